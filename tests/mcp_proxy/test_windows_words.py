"""Command lines that were written for Windows."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.mcp_proxy.windows_words import is_windows_path, split_words, windows_variable, without_cmd

WORDS = st.lists(st.sampled_from(["cmd", "CMD.EXE", "/c", "/d", "npx", "npx.cmd", "a b", "'", "", "&&"]), min_size=1)


class WindowsWordsTests(SynchronousTestCase):
    def test_paths(self) -> None:
        for text in (r"C:\x", "d:/x", r"\\host\share\x"):
            self.assertTrue(is_windows_path(text), text)
        for text in ("c", "/c:/x", "https://x", "x:y", r"a\b", "C:"):
            self.assertFalse(is_windows_path(text), text)

    def test_variables(self) -> None:
        self.assertEqual(windows_variable(r"--dir=%LocalAppData%\x"), "%LocalAppData%")
        for text in ("%20a%20", "100%", "%OTHER%", "https://x/%E4temp%E4"):
            self.assertIsNone(windows_variable(text), text)

    def test_words(self) -> None:
        self.assertEqual(split_words(r"node src\index.js 'a b' #c"), ["node", r"src\index.js", "a b", "#c"])
        self.assertEqual(split_words(r"my\ tool -x"), ["my tool", "-x"])

    def test_what_is_not_plain_stays(self) -> None:
        for words in (["cmd"], ["cmd", "/c"], ["cmd", "npx"], ["cmd", "/c", "a && b"], ["cmd", "/c", "'a"], ["a.exe"]):
            self.assertEqual(without_cmd(words), words)

    @given(WORDS)
    def test_some_words_are_left(self, words: list[str]) -> None:
        self.assertTrue(without_cmd(words))
