"""What is tested with a real application of GTK 4, which does not know where on the screen its windows are."""

from __future__ import annotations

from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from tests.desktop.desktops import BLACK, SECONDS, Desktop, Server, colours, wait_for
from tests.programs import program

APP = "gtk4-demo"


def choose_password(case: SynchronousTestCase, desktop: Desktop, server: Server) -> None:
    """Choose a password in a dialog: in its first field by name, in the second by a click and keys."""
    dialog = desktop.run(program(APP), "--run", "password_entry")
    window = server.window(APP)

    def elements(role: str) -> list[dict[str, Any]]:
        result = server.answer(server.send("tools/call", name="tree", arguments={"app": APP}))
        found = [] if result["isError"] else Server.value(result)["elements"]
        return [each for each in found if each["role"] == role]

    first, second = wait_for(lambda: elements("password text"), "the fields")
    server.call("set_value", **server.on(first, APP), value="tiger")
    x, y, width, height = second["bounds"]
    at = {"app": APP, "window": window["window"], "bounds": window["bounds"]}
    server.call("click", **at, point=[x + width // 2, y + height // 2])
    server.call("type", app=APP, window=window["window"], text="tiger")
    picture, about = server.parts("screenshot", app=APP)
    for field in (first, second):
        case.assertEqual(colours(picture, about["text"], field["bounds"]), BLACK)
    done = wait_for(lambda: [each for each in elements("button") if not each.get("disabled")], "two equal passwords")[0]
    case.assertNotIn("tiger", str(server.call("tree", app=APP)))
    marks = server.call("screenshot", app=APP, marks=True)["marks"].values()
    case.assertEqual([each["role"] for each in marks], ["password text", "password text", "button"])
    label = server.on(elements("label")[0], APP)
    case.assertIn("cannot be pressed", server.refusal("press", **label))
    server.call("press", **server.on(done, APP))
    case.assertEqual(dialog.wait(SECONDS), 0)
