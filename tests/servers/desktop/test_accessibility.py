"""Elements of an application that means harm, on a bus of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from dbus_fast import Message, MessageType, Variant
from dbus_fast.aio import MessageBus
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.servers.desktop.accessibility import VALUE_LIMIT, Accessibility, Element, Place
from ironcurtain.servers.desktop.bus import Bus, NoAnswer
from ironcurtain.servers.desktop.looking import _lines
from ironcurtain.servers.desktop.model import DesktopError
from tests.desktop.desktops import Desktop

_PATH = "/org/a11y/atspi/accessible/"

Answers = dict[str, tuple[str, list[Any]]]
"""By member, the signature and the values of the answer; members that are missing are never answered."""


def answers(name: str = "x", role: str = "panel", children: int = 0, **more: tuple[str, list[Any]]) -> Answers:
    """:returns: those of an ordinary element, whose children are named after their numbers."""
    known = {"Name": Variant("s", name), "ChildCount": Variant("i", children)}
    return {
        "GetAll": ("a{sv}", [known]),
        "GetInterfaces": ("as", [["org.a11y.atspi.Accessible"]]),
        "GetState": ("au", [[0, 0]]),
        "GetRoleName": ("s", [role]),
        "GetRole": ("u", [39]),
        **more,
    }


class HostileTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.desktop = Desktop()
        self.addCleanup(self.desktop.close)

    def ask(
        self, answer: Callable[[str, str, list[Any]], tuple[str, list[Any]] | None],
        question: Callable[[Accessibility, str], Coroutine[Any, Any, Any]],
    ) -> Any:  # fmt: skip
        """
        :param answer: of the application, by path of the object, member and arguments; ``None``: it is silent.
        :param question: gets the name of the application on the bus.
        """

        async def both() -> Any:
            address = self.desktop.environ["DBUS_SESSION_BUS_ADDRESS"]
            app = await MessageBus(bus_address=address).connect()

            def handle(message: Message) -> Any:
                if message.message_type is not MessageType.METHOD_CALL:
                    return None
                found = answer(message.path or "", message.member or "", message.body)
                if found is not None:
                    app.send(Message.new_method_return(message, found[0], found[1]))
                return True

            app.add_message_handler(handle)
            try:
                async with Bus(address) as bus:
                    return await question(Accessibility(bus), str(app.unique_name))
            finally:
                app.disconnect()
                await app.wait_for_disconnect()

        return asyncio.run(both())

    def read(self, element: Answers) -> Element:
        def answer(path: str, member: str, body: list[Any]) -> tuple[str, list[Any]] | None:
            return element.get(member)

        return self.ask(answer, lambda access, app: access.read(Place(app, f"{_PATH}1")))  # type: ignore[no-any-return]

    def test_hundred_thousand_children_are_not_read(self) -> None:
        calls = 0

        def answer(path: str, member: str, body: list[Any]) -> tuple[str, list[Any]] | None:
            nonlocal calls
            calls += 1
            if member == "GetChildAtIndex":
                return "(so)", [["", f"{_PATH}{body[0] + 2}"]]
            return answers(children=100_000 if path == f"{_PATH}1" else 0).get(member)

        def children(path: str, member: str, body: list[Any]) -> tuple[str, list[Any]] | None:
            found = answer(path, member, body)
            if member == "GetChildAtIndex" and found is not None:
                found[1][0][0] = self.app
            return found

        async def question(access: Accessibility, app: str) -> Element:
            self.app = app
            return await access.tree(Place(app, f"{_PATH}1"), 6, 200)

        top = self.ask(children, question)
        self.assertEqual((len(top.children), top.more), (199, 99_801))
        self.assertLess(calls, 2000)

    def test_application_in_circles_is_read_to_the_limit(self) -> None:
        def answer(path: str, member: str, body: list[Any]) -> tuple[str, list[Any]] | None:
            if member == "GetChildren":
                return "a(so)", [[[self.app, f"{_PATH}1"], [self.app, f"{_PATH}1"]]]
            return answers(name="", children=2).get(member)

        async def question(access: Accessibility, app: str) -> Element:
            self.app = app
            return await access.tree(Place(app, f"{_PATH}1"), 30, 300)

        self.assertEqual(sum(1 for _ in self.ask(answer, question).walk()), 300)

    def test_deep_application_is_read_to_a_depth(self) -> None:
        def answer(path: str, member: str, body: list[Any]) -> tuple[str, list[Any]] | None:
            if member == "GetChildren":
                return "a(so)", [[[self.app, f"{_PATH}1"]]]
            return answers(name="", children=1).get(member)

        async def question(access: Accessibility, app: str) -> Element:
            self.app = app
            return await access.tree(Place(app, f"{_PATH}1"), 30, 2000)

        top = self.ask(answer, question)
        self.assertEqual([each.more for each in top.walk()][-1], 1)
        self.assertEqual([line["more"] for line in _lines(top, 0)], [1])

    def test_elements_of_others_are_not_read_as_its_own(self) -> None:
        def answer(path: str, member: str, body: list[Any]) -> tuple[str, list[Any]] | None:
            if member == "GetChildren":
                return "a(so)", [[[self.other, f"{_PATH}1"]]]
            return answers(children=1).get(member)

        async def question(access: Accessibility, app: str) -> tuple[int, int]:
            async with Bus(self.desktop.environ["DBUS_SESSION_BUS_ADDRESS"]) as bus:
                self.other = str(bus._bus.unique_name)
                top = await access.tree(Place(app, f"{_PATH}1"), 3, 300, lambda pid: False)
            return len(top.children), top.more

        self.assertEqual(self.ask(answer, question), (0, 1))

    def test_list_of_another_application_is_not_changed(self) -> None:
        def answer(path: str, member: str, body: list[Any]) -> tuple[str, list[Any]] | None:
            if member == "GetIndexInParent":
                return "i", [0]
            parent = Variant("(so)", ["org.freedesktop.DBus", f"{_PATH}1"])
            return ("v", [parent]) if member == "Get" else answers().get(member)

        async def question(access: Accessibility, app: str) -> None:
            await access.select(await access.read(Place(app, f"{_PATH}1")))

        with self.assertRaisesRegex(DesktopError, "in a list of another application"):
            self.ask(answer, question)

    def test_silent_application_is_given_up(self) -> None:
        silent = answers()
        del silent["GetState"]
        with self.assertRaisesRegex(NoAnswer, "within 2 seconds"):
            self.read(silent)

    def test_application_that_ends_during_a_call_is_gone(self) -> None:
        async def both() -> None:
            address = self.desktop.environ["DBUS_SESSION_BUS_ADDRESS"]
            app = await MessageBus(bus_address=address).connect()
            name = str(app.unique_name)

            def end(message: Message) -> None:
                if message.path == f"{_PATH}1":
                    app.disconnect()

            app.add_message_handler(end)
            async with Bus(address) as bus:
                for _ in range(2):  # in the call, and before the next
                    with self.assertRaisesRegex(NoAnswer, "the application has ended"):
                        await Accessibility(bus).read(Place(name, f"{_PATH}1"))
                with self.assertRaisesRegex(DesktopError, "has ended; call tree again"):
                    await Accessibility(bus).process(Place(name, f"{_PATH}1"))

        asyncio.run(both())

    def test_answers_of_wrong_shape_are_refusals(self) -> None:
        wrong: tuple[Answers, ...] = (
            {"GetAll": ("a{sv}", [{"ChildCount": Variant("s", "many")}])},
            {"GetAll": ("s", ["x"])},
            {"GetState": ("s", ["x"])},
            {"GetRoleName": ("", [])},
            {"GetInterfaces": ("as", [["org.a11y.atspi.Component"]]), "GetExtents": ("s", ["x"])},
            {"GetInterfaces": ("as", [["org.a11y.atspi.Action"]]), "GetActions": ("as", [["x", ""]])},
        )
        for each in wrong:
            with self.assertRaises(DesktopError):
                self.read({**answers(), **each})

    def test_texts_are_escaped_and_cut(self) -> None:
        has = ("as", [["org.a11y.atspi.Text"]])
        text = f"approve\x1b[2J\u202e{'x' * 100_000}"
        found = self.read(answers(name=text, role=text, GetInterfaces=has, GetText=("s", [text])))
        (line,) = _lines(found, 0)
        self.assertNotIn("\x1b", str(line))
        self.assertNotIn("\u202e", str(line))
        self.assertLess(len(str(line)), VALUE_LIMIT * 3)

    def test_secret_text_is_not_asked_for(self) -> None:
        has: Answers = {"GetInterfaces": ("as", [["org.a11y.atspi.Text"]]), "GetText": ("s", ["tiger"])}
        asked: list[str] = []
        secret: Answers = {}

        def answer(path: str, member: str, body: list[Any]) -> tuple[str, list[Any]] | None:
            asked.append(member)
            return secret.get(member)

        for role in (answers(role="password text"), answers(role="text box", GetRole=("u", [40]))):
            secret = {**role, **has}
            found = self.ask(answer, lambda access, app: access.read(Place(app, f"{_PATH}1")))
            self.assertEqual((found.value, found.role), (None, "password text"))
            self.assertNotIn("GetText", asked)


class RefTests(SynchronousTestCase):
    def test_references_are_read_as_they_are_written(self) -> None:
        for place in (Place(":1.7", f"{_PATH}12"), Place(":1.70", "/org/gnome/Calculator/a11y/3_f")):
            self.assertEqual(Place.of(place.ref), place)
        for wrong in ("", "1.7", ":1.7/3", "1.7/../x", "org.a11y.Bus/1", "1.7/a\n"):
            with self.assertRaises(DesktopError):
                Place.of(wrong)
