"""The built-in agent remembers, as a person sees it: the installed product, killed in the middle of a call."""

from __future__ import annotations

import base64
import json
import signal
from typing import Any

from tests.cli.cases import ProductCase
from tests.product import until
from tests.senses.pictures import plain

WORK = {
    "text": "I write it.",
    "code": "draft = 'once'\nfilesystem.write_file(path='note.txt', content=draft)\n"
    "print(filesystem.read_text_file('~/secret.txt'))",
}
TOLD = (
    'worked on got no answer: "write the note"\n'
    "Calls of this turn that are over, do not repeat what succeeded:\n"
    '- filesystem.write_file {"path":"note.txt","content":"once"}: success\n'
    '- filesystem.read_text_file {"path":"~/secret.txt"}: not made: nobody had decided on it\n'
    "The interpreter was restarted, so these variables are gone: draft."
)


class PictureTests(ProductCase):
    def test_picture_of_a_tool_is_shown_and_its_data_is_nowhere(self) -> None:
        picture = plain(64, 48, b"\x10\x90\xd0")
        (self.product.person / "a.png").write_bytes(picture)
        code = {"code": f"shot = filesystem.read_media_file('{self.product.person}/a.png')\nshow(shot)\nprint(shot)"}
        handle = "{'id': 'picture-1', 'media_type': 'image/png', 'width': 64, 'height': 48}\n(pictures shown: 1)"
        backend = self.product.script(code, {"expect": {"last_result_contains": handle}, "text": "A blue box."})
        policy = self.product.home / "policy.toml"
        policy.parent.mkdir(0o700)
        policy.write_text('[[rules]]\nname = "all"\nif = { server = ["filesystem"] }\nthen = "allow"\n')
        done = self.product.run("start", "--backend", backend, "look")
        self.assertEqual((done.returncode, done.stdout), (0, "A blue box.\n"), done.stderr)
        (session,) = self.product.home.glob("sessions/*")
        kept = b"".join(path.read_bytes() for path in session.rglob("*") if path.is_file() and path.suffix != ".png")
        self.assertIn(b"image/png 64x48", kept)
        self.assertNotIn(base64.b64encode(picture)[:60], kept)
        self.assertNotIn(picture, kept)


class ResumedTests(ProductCase):
    def kill_in_a_call(self, *turns: dict[str, Any]) -> str:
        """
        Kill a conversation while a call of its first message waits for a person.

        :returns: the backend, with all turns of the model.
        """
        backend = self.product.script(WORK, *turns)
        process = self.product.start("start", "--backend", backend)
        assert process.stdin is not None
        process.stdin.write("write the note\n")
        process.stdin.flush()
        until(process.stderr, "/approve 1")
        process.send_signal(signal.SIGKILL)
        process.wait()
        return backend

    def test_after_a_kill_the_model_knows_what_it_was_asked_and_did_and_what_is_gone(self) -> None:
        look = {
            "expect": {"last_user_contains": TOLD, "last_result_contains": "cut off", "last_result_is_error": True},
            "code": "print(filesystem.read_text_file('note.txt'))",
        }
        said = {"expect": {"last_result_contains": "once"}, "text": "It is written already."}
        backend = self.kill_in_a_call(look, said)
        done = self.product.run("start", "--resume", "last", "--backend", backend, "go on")
        self.assertEqual((done.returncode, done.stdout), (0, "It is written already.\n"), done.stderr)
        calls = [record["tool"] for record in self.product.audit() if record["kind"] == "call"]
        self.assertEqual(calls, ["write_file", "read_text_file", "read_text_file"])
        (path,) = self.product.home.glob("sessions/*/conversation.jsonl")
        self.assertEqual(path.stat().st_mode & 0o7777, 0o600)

    def test_the_turn_that_was_cut_off_is_in_the_history_as_such(self) -> None:
        backend = self.kill_in_a_call({"text": "Well."})
        process = self.product.start("start", "--resume", "last", "--backend", backend)
        out, err = process.communicate("/history\n/quit\n")
        self.assertEqual(process.returncode, 0, err)
        self.assertIn("write the note", out + err)
        self.assertIn("no answer: interrupted", out + err)

    def test_programs_and_results_of_a_session_that_ended_come_back(self) -> None:
        code = {"code": "answer = 42\nprint(answer)"}
        first = self.product.script(code, {"text": "It is 42."})
        self.assertEqual(self.product.run("start", "--backend", first, "compute").returncode, 0)
        gone = {"last_user_contains": "so these variables are gone: answer."}
        second = self.product.script(code, {"text": "It is 42."}, {"expect": gone, "text": "It was 42."})
        done = self.product.run("start", "--resume", "last", "--backend", second, "what was it?")
        self.assertEqual((done.returncode, done.stdout), (0, "It was 42.\n"), done.stderr)

    def test_a_session_of_an_earlier_version_has_its_messages_and_answers(self) -> None:
        backend = self.product.script({"text": "Hello."}, {"text": "You said hi."})
        self.assertEqual(self.product.run("start", "--backend", backend, "hi").returncode, 0)
        (path,) = self.product.home.glob("sessions/*/conversation.jsonl")
        path.unlink()
        done = self.product.run("start", "--resume", "last", "--backend", backend, "what did I say?")
        self.assertEqual((done.returncode, done.stdout), (0, "You said hi.\n"), done.stderr)
        self.assertEqual([text for text in ("hi", "Hello.") if f'"{text}"' not in path.read_text()], [])

    def test_a_long_conversation_is_shortened_if_the_settings_say_so(self) -> None:
        self.product.home.mkdir(mode=0o700)
        settings = '[model]\nmax_tokens = 100\n[session]\ncontext_strategy = "truncate"\ncontext_tokens = 16000\n'
        (self.product.home / "config.toml").write_text(settings)
        turns = [{"code": "print('word ' * 7000)"}, {"text": "Done."}]
        backend = self.product.script(*turns, {"text": "Still here."})
        self.assertEqual(self.product.run("start", "--backend", backend, "say words").returncode, 0)
        shorter = self.product.script({"text": "unused"}, {"text": "Still here."})
        done = self.product.run("start", "--resume", "last", "--backend", shorter, "word " * 7000)
        self.assertEqual((done.returncode, done.stdout), (0, "Still here.\n"), done.stderr)
        self.assertIn("to fit the model, old programs and their results were left out (truncate)", done.stderr)
        records = [json.loads(line) for line in self.conversation().splitlines()]
        self.assertIn("word word", str([r for r in records if r["type"] == "results"]))

    def conversation(self) -> str:
        """:returns: the file of the only session."""
        (path,) = self.product.home.glob("sessions/*/conversation.jsonl")
        return path.read_text()
