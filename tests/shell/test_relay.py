"""Nothing is lost, doubled or reordered between a relay and the session that follows it."""

from __future__ import annotations

import socket
from collections.abc import Iterable

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.shell.relay import OUTPUT_LIMIT, Relay, Relayed
from ironcurtain.shell_integration.marks import InstructionTyped, Mark, MarkReader, PromptEnded
from ironcurtain.terminal.changes import TerminalChanges
from tests.shell.wrapped import NONCE, PASTING, PROMPT, mark, private

INSTRUCTION = private("instruction", "# look")
BUFFER = 20_000

OUTPUTS = st.sampled_from(
    (b"text\r\n", PROMPT, mark("C"), mark("D;1"), PASTING, b"\x1b", b"\x1b]133;", b"\xff", INSTRUCTION)
)


def drained(end: socket.socket) -> bytes:
    """:returns: all that has come."""
    found = b""
    try:
        while data := end.recv(65536):
            found += data
    except BlockingIOError:
        pass
    return found


def together(pieces: Iterable[bytes | Mark]) -> list[bytes | Mark]:
    """:returns: the same, with neighbouring output joined."""
    joined: list[bytes | Mark] = []
    for piece in pieces:
        if isinstance(piece, bytes) and joined and isinstance(before := joined[-1], bytes):
            joined[-1] = before + piece
        else:
            joined.append(piece)
    return joined


class Place:
    """A relay, the user and the shell, both of which a test plays."""

    def __init__(self, *, integrated: bool = True, foreground: bool = True) -> None:
        self.user, self.terminal = socket.socketpair()
        self.shell, self.master = socket.socketpair()
        for end in self._ends:
            end.setblocking(False)
        for end in (self.terminal, self.master):
            end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, BUFFER)
        self.relay = Relay(
            self.terminal.fileno(), self.master.fileno(), NONCE, integrated, lambda: foreground, TerminalChanges()
        )

    @property
    def _ends(self) -> tuple[socket.socket, ...]:
        return self.user, self.terminal, self.shell, self.master

    def writes(self, *output: bytes) -> None:
        """The shell writes; each piece is relayed alone."""
        for each in output:
            self.shell.sendall(each)
            self.relay.turn()

    def types(self, keys: bytes) -> None:
        """The user types."""
        self.user.sendall(keys)
        self.relay.turn()

    def over(self) -> Relayed:
        """:returns: where it stopped."""
        self.relay.stop()
        while self.relay.turn():
            pass
        return self.relay.close()

    def close(self) -> None:
        """It is not used any more."""
        for end in self._ends:
            end.close()


class RelayTests(SynchronousTestCase):
    """What is typed, and what the shell writes."""

    def place(self, *, integrated: bool = True, foreground: bool = True) -> Place:
        made = Place(integrated=integrated, foreground=foreground)
        self.addCleanup(made.close)
        return made

    def test_output_is_shown_without_marks(self) -> None:
        place = self.place()
        place.writes(b"hi\r\n" + PROMPT)
        self.assertEqual(drained(place.user), b"hi\r\n$ ")
        relayed = place.over()
        self.assertIn(PromptEnded(), relayed.shown)
        self.assertEqual((relayed.waiting, relayed.unshown, relayed.untyped), ((), b"", b""))
        self.assertEqual((relayed.streams.ahead, relayed.streams.entered), (b"", False))

    def test_keys_reach_the_shell(self) -> None:
        place = self.place()
        place.types(b"ls\r")
        place.types(b"ec")
        self.assertEqual(drained(place.shell), b"ls\rec")
        relayed = place.over()
        self.assertEqual((relayed.streams.ahead, relayed.streams.entered), (b"ec", True))

    def test_an_instruction_and_all_that_follows_waits(self) -> None:
        place = self.place()
        place.writes(b"# look\r\n" + INSTRUCTION + b"later" + PROMPT)
        self.assertEqual(drained(place.user), b"# look\r\n")
        place.shell.sendall(b"more")
        place.user.sendall(b"keys")
        relayed = place.over()
        self.assertEqual(relayed.shown, (b"# look\r\n",))
        self.assertEqual(relayed.waiting[:2], (InstructionTyped("look"), b"later"))
        self.assertEqual((drained(place.user), drained(place.shell)), (b"", b""))
        self.assertEqual((drained(place.terminal), drained(place.master)), (b"keys", b"more"))

    def test_without_marks_an_instruction_begins_with_another_sign(self) -> None:
        place = self.place(integrated=False)
        place.types(b"ls\r## look\r")
        self.assertEqual(drained(place.shell), b"ls\r\r")
        self.assertIn(b"## look", drained(place.user))
        self.assertEqual(place.over().waiting, (InstructionTyped("look"),))

    def test_the_sign_is_a_key_like_others_while_a_job_has_theterminal(self) -> None:
        place = self.place(integrated=False, foreground=False)
        place.types(b"## look\r")
        self.assertEqual(drained(place.shell), b"## look\r")
        self.assertEqual(place.over().waiting, ())

    def test_a_user_who_does_not_read(self) -> None:
        place, output = self.place(), bytes(range(256)) * 240
        place.writes(output)
        place.shell.sendall(b"waits")
        relayed = place.over()
        self.assertTrue(relayed.unshown)
        self.assertEqual(drained(place.user) + relayed.unshown, output)
        self.assertEqual((relayed.shown, drained(place.master)), ((output,), b"waits"))

    def test_a_user_who_reads_later(self) -> None:
        place, output = self.place(), bytes(range(256)) * 240
        place.writes(output)
        seen = b""
        while len(seen) < len(output):
            seen += drained(place.user)
            if len(seen) < len(output):
                place.relay.turn()
        self.assertEqual((seen, place.over().unshown), (output, b""))

    def test_a_shell_that_does_not_read(self) -> None:
        place, keys = self.place(), bytes(range(256)) * 240
        place.types(keys)
        place.user.sendall(b"waits")
        relayed = place.over()
        self.assertTrue(relayed.untyped)
        self.assertEqual(drained(place.shell) + relayed.untyped, keys)
        self.assertEqual(drained(place.terminal), b"waits")

    def test_a_shell_that_reads_later(self) -> None:
        place, keys = self.place(), bytes(range(256)) * 240
        place.types(keys)
        seen = b""
        while len(seen) < len(keys):
            seen += drained(place.shell)
            if len(seen) < len(keys):
                place.relay.turn()
        self.assertEqual((seen, place.over().untyped), (keys, b""))

    def test_the_shell_waits_when_it_has_written_much(self) -> None:
        place = self.place()
        for _ in range(OUTPUT_LIMIT // 8192):
            place.writes(b"x" * 8192)
            drained(place.user)
        place.shell.sendall(b"late")
        place.over()
        self.assertEqual(drained(place.user), b"")
        self.assertEqual(drained(place.master), b"late")

    def test_the_shell_ends(self) -> None:
        place = self.place()
        place.writes(b"bye")
        place.shell.close()
        place.relay.turn()
        place.types(b"x")  # does not matter any more
        relayed = place.over()
        self.assertEqual((drained(place.user), relayed.shown), (b"bye", (b"bye",)))

    def test_theterminal_ends(self) -> None:
        place = self.place()
        place.user.close()
        place.relay.turn()
        place.writes(b"to nobody")
        self.assertEqual(place.over().unshown, b"")

    @given(st.lists(OUTPUTS, max_size=12), st.integers(1, 30), st.integers(0, 40))
    def test_any_slicing_and_any_moment(self, parts: list[bytes], size: int, moment: int) -> None:
        place, output, reader = Place(), b"".join(parts), MarkReader(NONCE)
        slices = [output[i : i + size] for i in range(0, len(output), size)]
        instructed = False
        for each in slices[:moment]:
            place.shell.sendall(each)
            if not instructed:
                place.relay.turn()
            instructed |= any(isinstance(piece, InstructionTyped) for piece in reader.feed(each))
        relayed = place.over()
        after = relayed.streams.reader.feed(drained(place.master) + b"".join(slices[moment:]))
        expected = together(MarkReader(NONCE).feed(output))
        self.assertEqual(together([*relayed.shown, *relayed.waiting, *after]), expected)
        self.assertEqual(drained(place.user), b"".join(each for each in relayed.shown if isinstance(each, bytes)))
        self.assertFalse(any(isinstance(each, InstructionTyped) for each in relayed.shown))
        place.close()
