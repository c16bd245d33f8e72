from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.codemode.names import assigned_names


class NamesTests(SynchronousTestCase):
    def test_what_a_program_sets(self) -> None:
        for code, names in (
            ("x = 1", "x"),
            ("a = b = 1; c = 2", "a b c"),
            ("a, (b, *c) = f(d=1)", "a b c"),
            ("total += 1", "total"),
            ("count: int = 3", "count"),
            ("a.b = 1\na[i] = 2", "i"),
            ("x == 1\nprint(x, end='')", ""),
            ("for i, j in pairs:\n    seen = i", "i j seen"),
            ("if ready: y = 1", "y"),
            ("with f() as g:\n    pass", "g"),
            ("if (n := len(a)) > 3:\n    print(n)", "n"),
            ("import json, os.path, re as r\nfrom math import pi, tau as t", "json os r pi t"),
            ("def f(a):\n    b = 1\n    return b\nc = 3", "f c"),
            ("async def f():\n    b = 1", "f"),
            ("class C:\n    x: int = 1\ny = 2", "C y"),
            ("write(\n    path='a',\n    text='''\nb = 1\n''',\n)", ""),
            ("x = 1\ny = (", "x"),
            ("é = 1", "é"),
        ):
            self.assertEqual(assigned_names(code), set(names.split()), code)

    @given(st.text(st.sampled_from("ab=:;.,()[]{}\n\t '\"\\#*1é") | st.characters(codec="utf-8"), max_size=60))
    def test_any_text_is_read(self, code: str) -> None:
        self.assertTrue(all(name.isidentifier() for name in assigned_names(code)))

    def test_deep_brackets_are_no_trouble(self) -> None:
        assigned_names("x = 1\ny = " + "(" * 100_000)
