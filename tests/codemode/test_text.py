from __future__ import annotations

import contextlib
import json
import time
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.builtin_agent import prompt
from ironcurtain.builtin_agent.replies import reply
from ironcurtain.codemode import diagnostics, prelude
from ironcurtain.codemode.bounded import Bounded, bounded, shown
from ironcurtain.codemode.functions import modules
from ironcurtain.codemode.model import CodeLimits, Tool, ToolReply

PATH = {"type": "object", "properties": {"path": {"type": "string", "description": "where"}}, "required": ["path"]}
MODULES = modules([Tool("files", name, f"To {name}. More.", PATH) for name in ("read_file", "write_file")])


class BoundedTests(SynchronousTestCase):
    @given(st.lists(st.text(max_size=20), max_size=20), st.integers(0, 60))
    def test_short_text_is_whole_and_long_text_has_head_and_tail(self, pieces: list[str], limit: int) -> None:
        kept = Bounded(limit)
        for piece in pieces:
            kept.write(piece)
        text, whole = kept.text(), "".join(pieces)
        if len(whole.encode()) <= limit:
            self.assertEqual(text, whole)
        else:
            head, _, rest = text.partition("\n[... ")
            _, _, tail = rest.partition(" bytes left out ...]\n")
            self.assertTrue(whole.startswith(head) and whole.endswith(tail))
            self.assertLessEqual(len(head.encode()) + len(tail.encode()), limit)

    def test_four_fifths_are_head(self) -> None:
        self.assertEqual(bounded("a" * 100 + "b" * 100, 10), "a" * 8 + "\n[... 190 bytes left out ...]\nbb")

    def test_an_endless_text_costs_no_more_memory_than_the_limit(self) -> None:
        kept = Bounded(1000)
        for _ in range(100):
            kept.write("x" * 100_000)
        self.assertIn("9999000 bytes left out", kept.text())
        self.assertLessEqual(len(kept._head) + len(kept._tail), 1000)

    def test_values(self) -> None:
        self.assertIsNone(shown(None, 100))
        for value, text in (("a\nb", "a\nb"), (["a\n"], "['a\\n']")):
            some = shown(value, 100)
            assert some is not None
            self.assertEqual((some.text(), some.missing), (text, 0))
        nested: list[Any] = []
        for _ in range(100_000):
            nested = [nested]
        deep = shown(nested, 100)
        assert deep is not None
        self.assertIn("too deeply", deep.text())
        while nested:
            nested = nested.pop()


class DiagnosticTests(SynchronousTestCase):
    def fatal(self, code: str, message: str, uncertain: set[str] | None = None) -> str | None:
        report = json.dumps([{"code": code, "message": message, "location": {"row": 3, "column": 1}}])
        return diagnostics.fatal(report, MODULES, uncertain or set())

    def test_a_wrong_tool_comes_with_the_right_ones(self) -> None:
        found = self.fatal("unresolved-attribute", "Module `files` has no member `red_file`")
        self.assertIn("Nothing was run", str(found))
        self.assertIn(
            "line 3: Module `files` has no member `red_file`. Did you mean read_file or write_file?", str(found)
        )

    def test_wrong_arguments_come_with_the_signature(self) -> None:
        for code in ("unknown-argument", "missing-argument", "too-many-positional-arguments", "invalid-argument-type"):
            found = self.fatal(code, "Argument `p` does not match any known parameter of function `read_file`")
            self.assertIn("It is files.read_file(path: str)", str(found))

    def test_what_python_would_run_is_not_fatal(self) -> None:
        for code, message in [
            ("unresolved-attribute", "Attribute `group` is not defined on `None` in union `Match[str] | None`"),
            ("unresolved-attribute", "Module `re` has no member `x`"),
            (
                "invalid-argument-type",
                "Argument to bound method `list.append` is incorrect: Expected `str`, found `int`",
            ),
            ("invalid-argument-type", "Argument to function `mine` is incorrect: Expected `str`, found `int`"),
            ("invalid-assignment", "Object of type `Literal[3]` is not assignable to `str`"),
            ("invalid-syntax", "`return` statement outside of a function"),
            ("something-new", "no names here"),
        ]:
            self.assertIsNone(self.fatal(code, message), message)

    def test_an_unknown_name_is_fatal_unless_an_earlier_program_may_have_made_it(self) -> None:
        message = "Name `fils` used when not defined"
        self.assertIn("Did you mean files?", str(self.fatal("unresolved-reference", message)))
        self.assertIsNone(self.fatal("unresolved-reference", message, diagnostics.names_in("fils = 1/0")))

    def test_many_findings_are_counted(self) -> None:
        each = {"code": "unresolved-reference", "message": "Name `x` used when not defined", "location": {"row": 1}}
        found = diagnostics.fatal(json.dumps([each] * 30), MODULES, ())
        self.assertEqual(str(found).splitlines()[-1], "and 20 more")


class PromptTests(SynchronousTestCase):
    def test_everything_is_told_where_it_fits(self) -> None:
        text = prompt.tools(MODULES)
        self.assertIn("files.read_file(path: str)\n    To read_file. More.\n    path: where", text)
        self.assertIn("no tools", prompt.tools(()))

    def test_long_lists_lose_detail_evenly_but_keep_the_names(self) -> None:
        many = modules([Tool("s", f"t{n}", "word. " * 50, PATH) for n in range(100)])
        short = prompt.tools(many, 6000)
        self.assertIn("s.t99(path: str)  # word", short)
        names = prompt.tools(many, 1000)
        self.assertIn("t99", names)
        self.assertIn("tools.help(", names)
        for limit in (200, 1000, 6000, 40_000):
            self.assertLessEqual(len(prompt.tools(many, limit)), limit)

    def test_the_limits_are_reported(self) -> None:
        text = prompt.language(CodeLimits(run_seconds=3.5))
        self.assertIn("3.5 s", text)
        self.assertIn("yield", text)
        for name in prelude.functions(()):
            self.assertIn(f"{name}(", text)


class LibraryTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.functions = prelude.functions(MODULES)

    def test_text(self) -> None:
        self.assertIn("-a\n+b\n", self.functions["text.diff"]("a\n", "b\n"))
        self.assertEqual(self.functions["text.glob"]("**/*.py", ["/x/a.py", "b.txt"]), ["/x/a.py"])

    def test_urls(self) -> None:
        parsed = self.functions["url.parse"]("HTTPS://u:p@Host.test:8080/a/b?x=1&x=&y=2#f")
        self.assertEqual((parsed["scheme"], parsed["host"], parsed["port"]), ("https", "host.test", 8080))
        self.assertEqual(parsed["query"], {"x": ["1", ""], "y": ["2"]})

    def test_help(self) -> None:
        self.assertEqual(self.functions["tools.help"](), "files: 2 tools")
        self.assertIn("files.read_file: To read_file", self.functions["tools.help"]("files"))
        self.assertIn("path: where", self.functions["tools.help"]("files.read_file"))
        self.assertRaises(ValueError, self.functions["tools.help"], "nothing")

    @given(
        st.sampled_from(["text.diff", "text.glob", "url.parse", "tools.help"]),
        st.lists(
            st.none() | st.integers() | st.text(max_size=20) | st.lists(st.text(max_size=5) | st.none(), max_size=3),
            max_size=3,
        ),
    )
    def test_only_two_kinds_of_errors_come_out(self, name: str, arguments: list[Any]) -> None:
        with contextlib.suppress(TypeError, ValueError):
            self.functions[name](*arguments)

    def test_bombs_are_refused_or_quick(self) -> None:
        for name, arguments in [
            ("text.diff", ("x" * 10**6, "")),
            ("text.glob", ("*", ["a"] * 10**6)),
            ("text.glob", ("*", ["a" * 10**6])),
            ("text.glob", ("*" * 10**6, ["a"])),
            ("url.parse", ("http://" + "a" * 10**6,)),
            ("tools.help", ("a" * 10**6,)),
        ]:
            self.assertRaises(ValueError, self.functions[name], *arguments)
        started = time.process_time()
        self.functions["text.diff"]("ab" * 100_000, "ba" * 100_000)
        self.functions["text.diff"]("a\nb\n" * 50_000, "b\nc\n" * 50_000)
        self.functions["text.diff"]("\n".join(f"a{n}\nsame" for n in range(15_000)), "same\n" * 40_000)
        self.functions["text.glob"]("*a" * 500 + "b", ["a" * 4000] * 20)
        self.assertLess(time.process_time() - started, 10.0)


class ReplyTests(SynchronousTestCase):
    def reply(self, **result: Any) -> ToolReply:
        return reply(json.dumps(result).encode())

    def test_texts_are_joined(self) -> None:
        text = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
        self.assertEqual(self.reply(content=text), ToolReply("a\nb"))
        self.assertEqual(self.reply(content=[]), ToolReply(""))

    def test_other_parts_stay_parts(self) -> None:
        link = {"type": "resource_link", "uri": "file:///a", "name": "a"}
        self.assertEqual(self.reply(content=[{"type": "text", "text": "a"}, link]).value, ["a", link])

    def test_structured_content_is_preferred_and_unwrapped(self) -> None:
        text = [{"type": "text", "text": "{}"}]
        self.assertEqual(self.reply(content=text, structuredContent={"a": 1, "b": 2}).value, {"a": 1, "b": 2})
        self.assertEqual(self.reply(content=text, structuredContent={"result": [1]}).value, [1])
        self.assertEqual(self.reply(content=text, structuredContent={"content": "x"}).value, "x")
        self.assertEqual(self.reply(content=text, structuredContent={"a": 1}).value, {"a": 1})

    def test_errors_and_denials(self) -> None:
        text = [{"type": "text", "text": "DENIED: rule"}]
        self.assertEqual(self.reply(content=text, isError=True), ToolReply(None, "DENIED: rule"))
        for code, denied in [("denied-by-rule", True), ("expired", True), ("backend-failed", False)]:
            meta = {"ironcurtain/code": code}
            self.assertEqual(self.reply(content=text, isError=True, _meta=meta).denied, denied)
        self.assertTrue(self.reply(content=[], isError=True).error)

    def test_results_that_are_none(self) -> None:
        for raw in (b"", b"{", b"[]", b"[" * 100_000, b"\xff"):
            self.assertTrue(reply(raw).error)

    @given(
        st.binary(max_size=60)
        | st.recursive(
            st.none() | st.text(max_size=5) | st.booleans(),
            lambda inner: (
                st.lists(inner, max_size=3)
                | st.dictionaries(
                    st.sampled_from(["content", "structuredContent", "isError", "_meta", "type", "text"]),
                    inner,
                    max_size=4,
                )
            ),
        ).map(lambda value: json.dumps(value).encode())
    )
    def test_no_result_breaks_it(self, raw: bytes) -> None:
        self.assertIsInstance(reply(raw), ToolReply)
