"""Tests for heads of audit logs that other hosts keep."""

from __future__ import annotations

import resource
from typing import Any

from twisted.logger import capturedLogs
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.audit.signing import SigningKey
from ironcurtain.audit.witness import FleetSink, fleet_heads
from ironcurtain.audit.witness_lines import head_line, read_heads
from ironcurtain.errors import ProtocolViolation, Unavailable
from ironcurtain.fleet import heads
from ironcurtain.fleet.heads import KeptHeads, heads_file
from ironcurtain.fleet.server_files import permissions
from ironcurtain.fleet.trust import Host, Trust
from ironcurtain.home.layout import Home
from tests.audit.doubles import scratch


class HeadsTests(SynchronousTestCase):
    def setUp(self) -> None:
        path = scratch(self)
        self.home = Home(path, path / "run")
        self.keys = {name: SigningKey.load_or_make(scratch(self)) for name in ("build", "other")}
        self.trust = Trust({name: Host(name, key.public.raw, {}) for name, key in self.keys.items()})
        self.kept = KeptHeads(self.home)

    def line(self, session: Any = "s", sequence: Any = 1, head: Any = "digest", host: Any = "build") -> bytes:
        return head_line(self.keys[host].sign(session, sequence, head, "time"))

    def take(self, *lines: bytes) -> None:
        for line in lines:
            self.kept.take("build", line, self.trust)

    def of_build(self) -> list[tuple[str, int, str]]:
        with heads_file(self.home, "build").open("rb") as lines:
            return [(head.session, head.sequence, head.head) for head in read_heads(lines)]

    def test_head_that_its_host_signed_is_kept(self) -> None:
        self.take(self.line(), self.line(sequence=2))
        self.assertEqual(self.of_build(), [("s", 1, "digest"), ("s", 2, "digest")])

    def test_nothing_else_is_kept(self) -> None:
        good = self.line()
        wrong = (
            self.line(host="other"),
            good.replace(b'"sequence":1', b'"sequence":2'),
            good.replace(b"digest", b"other!"),
            good + self.line(sequence=2),
            b"",
            b"{}",
            self.line(session="s" * 5000),
            b'{"session":"' + b"[" * 2000,
        )
        for line in wrong:
            self.assertRaises(ProtocolViolation, self.take, line)
        self.assertRaises(ProtocolViolation, self.kept.take, "unknown", good, self.trust)
        self.assertRaises(ProtocolViolation, self.kept.take, "../x", good, self.trust)
        self.assertFalse(heads_file(self.home, "build").exists())

    def test_file_is_bounded_and_keeps_what_proves_most(self) -> None:
        self.take(*(self.line(sequence=number) for number in (1, 3, 2)), self.line(sequence=3, head="fork"))
        self.patch(heads, "KEPT_BYTES", 100)
        self.take(self.line("t"))
        self.assertEqual(self.of_build(), [("s", 3, "digest"), ("s", 3, "fork"), ("t", 1, "digest")])
        self.patch(heads, "KEPT_SESSIONS", 2)
        with capturedLogs() as logged:
            self.take(self.line("u"))
        self.assertEqual([(each["dropped"], each["host"]) for each in logged], [(1, "build")])
        self.assertEqual(self.of_build(), [("t", 1, "digest"), ("u", 1, "digest")])

    def test_head_that_a_full_disk_refused_is_kept_when_it_comes_again(self) -> None:
        self.take(self.line())
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (len(self.line()) + 50, hard))
        try:
            self.assertRaises(Unavailable, self.take, self.line(sequence=2))
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        self.take(self.line(sequence=2))
        self.assertEqual(self.of_build(), [("s", 1, "digest"), ("s", 2, "digest")])

    def test_full_file_is_not_written_again_for_each_head(self) -> None:
        self.assertLess(2 * heads.KEPT_SESSIONS * heads.LINE_LIMIT, heads.KEPT_BYTES * 3 // 4)
        self.assertRaises(ProtocolViolation, self.take, self.line(session="s" * 400))

    def test_heads_of_this_host_wait_on_the_disk(self) -> None:
        sink = FleetSink(self.home)
        for line in (self.line(), self.line(sequence=2), self.line("t")):
            sink.write(line)
        self.assertEqual(fleet_heads(self.home).lines(), [("s", self.line(sequence=2)), ("t", self.line("t"))])

    def test_server_lets_a_host_publish_only_its_own_heads(self) -> None:
        allowed = permissions("build")["publish"]["allow"]
        self.assertEqual(
            [each for each in allowed if each.startswith("ironcurtain.heads")], ["ironcurtain.heads.build"]
        )
        self.assertFalse([each for each in allowed if "ironcurtain_heads" in each and "DELETE" in each])
