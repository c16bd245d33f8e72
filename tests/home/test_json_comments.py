"""JSON with comments and last commas."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.errors import ConfigurationError
from ironcurtain.home.json_comments import plain_json
from ironcurtain.home.parsing import parse_json

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text() | st.sampled_from(["// no", "/* no */", '",}', "\\"]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4) | st.just("//"), inner, max_size=4),
    max_leaves=12,
)
BLANKS = st.sampled_from(["", " ", "\n", '// " } , */\n', "/**/", '/* " ] // \n */', "/* /* */"])


class CommentTests(SynchronousTestCase):
    def read(self, text: str) -> Any:
        return parse_json("f.json", plain_json("f.json", text))

    def refused(self, text: str) -> str:
        """:returns: the message that a text is refused with."""
        return str(self.assertRaises(ConfigurationError, self.read, text))

    def test_comments_and_last_commas_are_removed(self) -> None:
        text = '// a\n{ /* b\n c */ "x": [1, 2, /* d */ ], // e\n "y": {"z": null,},\n}\n// f'
        self.assertEqual(self.read(text), {"x": [1, 2], "y": {"z": None}})

    def test_texts_keep_what_looks_like_a_comment(self) -> None:
        text = r'{"url": "https://example.org/mcp", "p": "C:\\", "q": "\"// /* ,}", "//": "/*"}'
        self.assertEqual(plain_json("f.json", text), text)
        self.assertEqual(self.read(text)["q"], '"// /* ,}')

    def test_errors_keep_their_lines(self) -> None:
        self.assertIn("f.json:4: ", self.refused('{\n/* one\ntwo */ "a": 1,\n"b" 2}'))
        self.assertIn('f.json:3: "a" occurs twice', self.refused('{"a": 1, // "a"\n/* "a": */\n"a": 2,}'))

    def test_an_open_comment_is_named(self) -> None:
        for text in ('{\n"a": 1 /* b }', '{\n"a": 1 /*/'):
            self.assertIn("f.json:2: the comment that begins here has no end", self.refused(text))

    def test_lone_commas_stay_errors(self) -> None:
        for text in ("[,]", "{,}", "[1,,]", "[1,,2]", '{"a":,}', ",", "[1],", "[1,}"):
            self.refused(text)

    def test_an_empty_file_is_named(self) -> None:
        for text in ("", " \n", "// nothing\n"):
            self.assertEqual(self.refused(text), "f.json: is empty")

    @given(VALUES, st.data())
    def test_any_value_is_read_as_without_them(self, value: Any, data: st.DataObject) -> None:
        def written(value: Any) -> str:
            blank = data.draw(BLANKS)
            comma = blank + data.draw(st.sampled_from([",", ""])) + data.draw(BLANKS)
            if isinstance(value, list):
                inner = ",".join(map(written, value))
                text = f"[{inner}{comma if value else blank}]"
            elif isinstance(value, dict):
                inner = ",".join(f"{blank}{json.dumps(key)}{blank}:{written(each)}" for key, each in value.items())
                text = f"{{{inner}{comma if value else blank}}}"
            else:
                text = json.dumps(value)
            return f"{blank}{text}{data.draw(BLANKS)}"

        text = written(value)
        plain = plain_json("f.json", text)
        self.assertEqual(json.loads(plain), value)
        self.assertEqual([len(line) for line in plain.split("\n")], [len(line) for line in text.split("\n")])

    @given(VALUES, st.sampled_from([None, 1]))
    def test_plain_json_stays_as_it_is(self, value: Any, indent: int | None) -> None:
        text = json.dumps(value, indent=indent)
        self.assertEqual(plain_json("f.json", text), text)

    @given(st.text(alphabet='{}[],:"/*\\\n 1a'))
    def test_any_text_is_read_or_refused(self, text: str) -> None:
        try:
            plain = plain_json("f.json", text)
        except ConfigurationError:
            return
        self.assertEqual(len(plain), len(text))
