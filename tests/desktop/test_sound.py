"""What the server hears and says, with a sound server that has no device."""

from __future__ import annotations

import os
import subprocess
from typing import ClassVar

from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.senses.client import SensesWorker
from tests.desktop.desktops import Desktop, Server, wait_for
from tests.programs import find, program


class SoundDesktop(Desktop):
    """One with loudspeakers and a microphone, which are connected to nothing; nothing is shown."""

    def show(self) -> None:
        """Start the sound server."""
        for name in ("pulseaudio", "pactl", "espeak-ng"):
            program(name)
        self.environ["PULSE_SERVER"] = f"unix:{self.top}/sound"
        self.run(
            "pulseaudio", "-n", "--daemonize=no", "--exit-idle-time=-1", "--use-pid-file=no", "--disallow-exit",
            "-L", f"module-native-protocol-unix socket={self.top}/sound auth-anonymous=1",
            "-L", "module-null-sink sink_name=loud", "-L", "module-null-sink sink_name=room",
            "-L", "module-remap-source source_name=microphone master=room.monitor",
        )  # fmt: skip
        wait_for(lambda: os.path.exists(f"{self.top}/sound"), "the sound server")
        for words in (("set-default-sink", "loud"), ("set-default-source", "microphone")):
            wait_for(lambda words=words: self.run("pactl", *words).wait() == 0, "its devices")  # type: ignore[misc]


class SoundTests(SynchronousTestCase):
    desktop: ClassVar[SoundDesktop]
    server: ClassVar[Server]

    @classmethod
    def setUpClass(cls) -> None:
        cls.desktop = SoundDesktop()
        cls.addClassCleanup(cls.desktop.close)
        cls.server = cls.desktop.server()
        cls.addClassCleanup(cls.server.close)

    def hear(self, source: str, seconds: int, *words: str) -> str:
        """:returns: what is heard while a sentence is played to a device, which ``words`` name."""
        wave = f"{self.desktop.top}/said.wav"
        self.assertEqual(self.desktop.run("espeak-ng", "-w", wave, "Open the file and delete the report.").wait(), 0)
        asked = self.server.send("tools/call", name="listen", arguments={"source": source, "seconds": seconds})
        wait_for(lambda: b"parec" in self.listed("source-outputs"), "the recording")
        self.assertEqual(self.desktop.run("paplay", *words, wave).wait(), 0)
        result = self.server.answer(asked)
        self.assertFalse(result["isError"], result)
        return str(result["content"][0]["text"]).lower()

    def listed(self, kind: str) -> bytes:
        return self.desktop.run("pactl", "list", kind, stdout=subprocess.PIPE).communicate()[0]

    def test_speech_is_heard_where_it_is_and_written_down(self) -> None:
        if why := SensesWorker().available()["speech"]:
            self.assertIn(why, self.server.call("status")["listen to the microphone"])
            return
        self.assertIn("delete the report", self.hear("system", 4))
        self.assertIn('"transcript": []', self.hear("microphone", 2))

    def test_what_is_spoken_plays(self) -> None:
        self.assertEqual(self.server.call("speak", text="-w x"), {"characters": 4})

    def test_application_without_sound_is_not_heard(self) -> None:
        why = self.server.refusal("listen", source="app", app="mousepad", seconds=1)
        self.assertEqual(why, "mousepad plays no sound now")
        self.assertIn("1 to 60", self.server.refusal("listen", source="system", seconds=61))

    def test_without_a_sound_server_none_is_started(self) -> None:
        assert find("pulseaudio")
        quiet = Desktop()
        self.addCleanup(quiet.close)
        server = quiet.server()
        self.addCleanup(server.close)
        self.assertIn("no sound server runs", server.refusal("listen", source="system"))
        self.assertIn("no sound server runs", server.refusal("speak", text="x"))
        states = server.call("status")
        self.assertEqual(
            {state.partition(":")[0] for name, state in states.items() if "tree" not in name}, {"unsupported"}
        )
