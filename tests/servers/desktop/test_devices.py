"""Notifications among programs that lie, and what is said where programs are missing."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from dbus_fast import Message, MessageType
from dbus_fast.aio import MessageBus
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.servers.desktop.accessibility import accessibility
from ironcurtain.servers.desktop.bus import NOTIFICATIONS
from ironcurtain.servers.desktop.devices import notify
from ironcurtain.servers.desktop.model import Unsupported
from tests.desktop.desktops import Desktop, listens, wait_for

_PATH = "/org/freedesktop/Notifications"


class NoticeTests(SynchronousTestCase):
    def test_only_who_shows_a_notification_says_what_was_chosen(self) -> None:
        desktop = Desktop()
        self.addCleanup(desktop.close)
        address = desktop.environ["DBUS_SESSION_BUS_ADDRESS"]

        def chosen(key: str, to: str) -> Message:
            signal = Message.new_signal(_PATH, NOTIFICATIONS, "ActionInvoked", "us", [7, key])
            signal.destination = to
            return signal

        async def asked() -> Any:
            shows, liar = [await MessageBus(bus_address=address).connect() for _ in range(2)]
            await shows.request_name(NOTIFICATIONS)

            def handle(message: Message) -> Any:
                if message.message_type is not MessageType.METHOD_CALL or message.member != "Notify":
                    return None
                shows.send(Message.new_method_return(message, "u", [7]))
                liar.send(chosen("0", str(message.sender)))
                asyncio.get_running_loop().call_later(0.3, lambda: shows.send(chosen("1", str(message.sender))))
                return True

            shows.add_message_handler(handle)
            try:
                return await notify(desktop.environ, "Go?", "", ["Yes", "No"], 10)
            finally:
                for each in (shows, liar):
                    each.disconnect()

        (answer,) = asyncio.run(asked())
        self.assertEqual(json.loads(answer["text"]), {"chosen": "No"})


class BareBusTests(SynchronousTestCase):
    def test_bus_without_accessibility_lacks_it_and_hides_nothing_else(self) -> None:
        desktop = Desktop()
        self.addCleanup(desktop.close)
        address = f"unix:path={desktop.top}/bare"
        allowed = "".join(f'<allow {each}="*"/>' for each in ("send_destination", "receive_sender", "own"))
        with open(f"{desktop.top}/bare.conf", "w") as settings:
            settings.write(
                f"<busconfig><listen>{address}</listen><policy context='default'>{allowed}</policy></busconfig>"
            )
        desktop.run("dbus-daemon", f"--config-file={desktop.top}/bare.conf", "--nofork", "--nopidfile")
        wait_for(lambda: listens(f"{desktop.top}/bare"), "the bus")

        async def asked() -> None:
            async with accessibility({"DBUS_SESSION_BUS_ADDRESS": address}):
                pass

        with self.assertRaisesRegex(Unsupported, "apt install at-spi2-core"):
            asyncio.run(asked())
