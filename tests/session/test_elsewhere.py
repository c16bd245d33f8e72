"""Sessions whose files lie outside of the home are found like all others."""

from __future__ import annotations

from pathlib import Path

from twisted.internet.defer import Deferred
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.errors import ConfigurationError, NotFound
from ironcurtain.session.elsewhere import (
    Elsewhere,
    damaged,
    described,
    elsewhere,
    remember,
    session_directory,
    workspaces,
)
from ironcurtain.session.resume import closed_session
from ironcurtain.session.session import Session
from tests.audit.doubles import scratch
from tests.session.doubles import World, request


class ElsewhereTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.world = World(scratch(self))
        self.home = self.world.home
        self.home.prepare()

    def session(self, directory: Path | None = None) -> Session:
        """:returns: a session that was, and has ended."""
        creating = Deferred.fromCoroutine(self.world.manager.create(request(directory=directory)))
        session: Session = self.successResultOf(creating)
        self.successResultOf(Deferred.fromCoroutine(session.close()))
        return session

    def found(self, name: str) -> Path:
        return session_directory(self.home, name).directory

    def test_by_number_by_id_and_as_the_last(self) -> None:
        outside = scratch(self) / "outside"
        first, second, third = self.session(), self.session(outside), self.session()
        for session, directory in ((first, self.home.session(first.id).directory), (second, outside)):
            self.assertEqual(self.found(str(session.number)), directory)
            self.assertEqual(self.found(session.id), directory)
        self.assertEqual(self.found("last"), self.home.session(third.id).directory)
        self.assertEqual([other.id for other in elsewhere(self.home)], [second.id])

    def test_one_directory_used_twice_is_found_by_both_numbers(self) -> None:
        outside = scratch(self) / "outside"
        for session in (self.session(outside), self.session(outside)):
            self.assertEqual(self.found(str(session.number)), outside)
        self.assertEqual(self.found("last"), outside)

    def test_a_number_is_no_beginning_of_an_id(self) -> None:
        outside = scratch(self)
        for number, session_id in ((1, "7f"), (7, "1f")):
            directory = str(outside / session_id)
            remember(self.home, Elsewhere(id=session_id, number=number, directory=directory))
        self.assertEqual([self.found(name).name for name in ("1", "7", "1f", "7f")], ["7f", "1f", "1f", "7f"])

    def test_digits_alone_are_no_beginning_of_an_id(self) -> None:
        remember(self.home, Elsewhere(id="77125eab-9d", number=1, directory=str(scratch(self) / "one")))
        self.assertEqual([self.found(name).name for name in ("77125e", "77125eab-9d")], ["one", "one"])
        for name in ("77", "77125", "", "78e"):
            self.assertRaises(NotFound, self.found, name)

    def test_beginning_of_several_ids_is_no_name_and_they_are_shown(self) -> None:
        for number in range(1, 8):
            remember(self.home, Elsewhere(id=f"7e{number}", number=number, directory=str(scratch(self) / "x")))
        with self.assertRaises(NotFound) as raised:
            self.found("7e")
        self.assertIn("7e is the beginning of 7 ids (7e1, 7e2, 7e3, 7e4, 7e5, ...)", str(raised.exception))
        self.assertEqual(self.found("7e3").name, "x")

    def test_damaged_description_spoils_no_other_session(self) -> None:
        whole, lost = self.session(), self.session()
        described_whole, snapshot = closed_session(self.home, whole.id), self.home.session(lost.id).snapshot
        for content in (b"", b"\xff", b"[]", b'{"id":"\xff"}', b'{"id":1,"number":"x"}', b'{"id":"../x","number":1}'):
            snapshot.write_bytes(content)
            self.assertEqual(self.found("last"), self.home.session(whole.id).directory)
            self.assertEqual(self.found(lost.id), snapshot.parent)
            self.assertRaises(NotFound, self.found, str(lost.number))
            self.assertRaises(NotFound, self.found, "../x")
            self.assertRaises(ConfigurationError, closed_session, self.home, lost.id)
            self.assertEqual([info.id for info in described(self.home)], [whole.id])
            self.assertEqual(list(damaged(self.home)), [snapshot])
            self.assertEqual(list(workspaces(self.home)), [described_whole.workspace])

    def test_description_of_which_only_a_part_is_there_is_found_by_its_number_and_damaged(self) -> None:
        lost = self.session()
        paths = self.home.session(lost.id)
        paths.snapshot.write_text(f'{{"id":"{lost.id}","number":{lost.number}}}')
        self.assertEqual(self.found(str(lost.number)), paths.directory)
        self.assertEqual((list(described(self.home)), list(damaged(self.home))), ([], [paths.snapshot]))

    def test_damaged_files_are_left_out(self) -> None:
        self.session()
        for name, content in (("z", b""), ("b", b"[]"), ("c", b"{}"), ("d", b'{"number":"x","id":1,"directory":2}')):
            (self.home.sessions / f"{name}.json").write_bytes(content)
        (self.home.sessions / "e.json").mkdir()
        self.assertEqual(list(elsewhere(self.home)), [])
        self.assertRaises(NotFound, session_directory, self.home, "z")
