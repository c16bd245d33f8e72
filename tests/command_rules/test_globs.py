"""Quotes, braces, wildcards and paths."""

from __future__ import annotations

from fnmatch import fnmatchcase

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.command_rules import Places
from ironcurtain.command_rules.globs import overlap, paths_cover, paths_overlap
from ironcurtain.command_rules.places import Roots, normal, reaches, shown
from ironcurtain.commandline import Match, Word
from ironcurtain.commandline.model import UNKNOWN, quoted
from ironcurtain.commandline.quoting import ansi_c, braces

globs = st.text("ab*?", max_size=6)
texts = st.text("ab", max_size=6)


class QuotingTests(SynchronousTestCase):
    """Words on text alone."""

    @given(st.text())
    def test_quoted_text_is_itself(self, text: str) -> None:
        word = Word.literal(text)
        if UNKNOWN not in text:
            self.assertEqual((word.text, word.known, word.is_glob, word.plain), (text, True, False, text))
        self.assertEqual(braces(quoted(text)), [quoted(text)] if not {"{", "}"} & set(text) else braces(quoted(text)))

    def test_braces(self) -> None:
        for pattern, words in (
            ("a", ["a"]),
            ("a{b,c}d", ["abd", "acd"]),
            ("{a,{b,c}d}e", ["ae", "bde", "cde"]),
            ("{1..3}", ["1", "2", "3"]),
            ("{c..a}", ["a", "b", "c"]),
            ("{1..99999}", [UNKNOWN]),
            ("{a}{}", ["\\{a\\}\\{\\}"]),
            ("\\{a,b\\}", ["\\{a,b\\}"]),
            ("{,b}", ["", "b"]),
            ("{a\\,b,c}", ["a\\,b", "c"]),
            ("{a", None),
            ("a}", None),
            ("{a,b}" * 9, None),
        ):
            self.assertEqual(braces(pattern), words, pattern)

    def test_ansi_c(self) -> None:
        self.assertEqual(ansi_c(r"a\x41\101\u00e9\n\'\c?" r"\xc3\xa9"), "aAA\u00e9\n'\x1f\u00e9")
        for text in (r"\0", r"\x00", r"\xff", r"\ud800", r"\z"):
            self.assertIsNone(ansi_c(text), text)


class GlobTests(SynchronousTestCase):
    """Wildcards."""

    @given(globs, texts)
    def test_overlap_with_a_text_is_a_match(self, glob: str, text: str) -> None:
        self.assertEqual(overlap(glob, text), fnmatchcase(text, glob))
        self.assertEqual(overlap(text, glob), fnmatchcase(text, glob))

    @given(globs, globs, texts)
    def test_what_both_match_is_an_overlap(self, left: str, right: str, text: str) -> None:
        if fnmatchcase(text, left) and fnmatchcase(text, right):
            self.assertTrue(overlap(left, right))

    def test_paths(self) -> None:
        for glob, path, overlaps, covers in (
            ("/a/**", "/a", True, True),
            ("/a/**", "/a/b/.c", True, True),
            ("/a/**", "/ab", False, False),
            ("/a/*", "/a/b", True, True),
            ("/a/*", "/a/b/c", False, False),
            ("/a/*", "/a/.b", False, False),
            ("/**/x", "/x", True, True),
            ("/**/x", "/a/b/x", True, True),
            ("/a/*.c", "/a/*", True, False),
            ("/a/*", "/a/*.c", True, True),
            ("/a/b", "/a/*", True, False),
            ("/A", "/a", True, False),
        ):
            self.assertIs(paths_overlap(normal(glob), normal(path)), overlaps, (glob, path))
            self.assertIs(paths_cover(normal(glob), normal(path)), covers, (glob, path))


class PlaceTests(SynchronousTestCase):
    """:class:`Places` and :class:`Roots`"""

    def test_forms(self) -> None:
        places = Places("/home/ann", ["/d", "/e"], lambda path: path.replace("/d/link", "/target"))
        for pattern, paths in (
            ("a/../b", {"/d/b", "/e/b"}),
            ("~/x", {"/home/ann/x"}),
            ("\\~/x", {"/d/~/x", "/e/~/x"}),
            ("/a//./b/", {"/a/b"}),
            ("/..", {"/"}),
            ("link/x", {"/d/link/x", "/target/x", "/e/link/x"}),
            ("link/*", {"/d/link/*", "/target/*", "/e/link/*"}),
            ("link/../x", {"/d/x", "/x", "/e/x"}),
        ):
            found = {shown(form) for form in places.forms(Word(pattern))}
            self.assertEqual(found | {"/x"}, paths | {"/x"}, pattern)

    def test_a_path_that_cannot_be_followed(self) -> None:
        def fail(path: str) -> str:
            raise OSError(path)

        self.assertEqual(Places("/h", ["/d"], fail).forms(Word("x")), {("d", "x")})

    def test_roots(self) -> None:
        roots = Roots([("home", "ann", "\\.ssh")])
        for path, match in (
            ("/home/ann/.ssh", Match.YES),
            ("/home/ann/.ssh/x", Match.YES),
            ("/HOME/ann/.SSH/x", Match.YES),
            ("/home/ann/.s*/x", Match.YES),
            ("/home/*/.ssh", Match.MAYBE),
            ("/home/ann/*", Match.NO),
            ("/home/ann/.sshx", Match.NO),
            ("/home/ann", Match.NO),
        ):
            self.assertIs(roots.reached(normal(path)), match, path)
        for path, holds in (("/home", True), ("/", True), ("/home/ann/*", True), ("/home/bob", False), ("/x/*", False)):
            self.assertIs(roots.held(normal(path)) is not None, holds, path)
        self.assertIs(reaches(normal("/a/b"), normal("/a")), Match.YES)
