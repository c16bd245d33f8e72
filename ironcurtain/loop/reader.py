"""
Read a program's output as a terminal does, and keep the text: ECMA-48, and what xterm adds to it. Pure.

Output is cut anywhere; what it takes to tell whether a sequence has ended is kept until the next piece comes.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable, Sequence
from functools import lru_cache

from ironcurtain.loop.page import Page
from ironcurtain.loop.rows import width

SEQUENCE_LIMIT = 4096
"""Most characters of a sequence that has not ended, before it no longer counts as one (our choice)."""

COUNT_LIMIT = 10_000
"""The largest number in a sequence that is believed (our choice: more than rows or columns)."""

PLAIN_LEAST = 2048
"""How many characters are worth trying whether they are nothing but lines."""

_TOKEN = re.compile(
    r"(?P<text>[^\x00-\x1f\x7f-\x9f]+)"
    r"|(?P<line>\r\n)"
    r"|\x1b\[(?P<numbers>[\x30-\x3f\x00-\x17\x19\x1c-\x1f]*)(?P<middle>[\x20-\x2f]*)(?P<final>[\x40-\x7e])"
    r"|\x1b(?P<string>[\]PX^_])"
    r"|\x1b(?P<set>[()])(?P<chosen>[\x30-\x7e])"
    r"|\x1b(?P<escape>[\x20-\x2f]*[\x30-\x7e])"
    r"|(?P<control>[\x00-\x1f\x7f-\x9f])"
)
_UNFINISHED = re.compile(r"\x1b(?:\[[\x30-\x3f\x00-\x17\x19\x1c-\x1f]*[\x20-\x2f]*|[\x20-\x2f]*)\Z|\r\Z")
_STRING_END = re.compile(r"\x1b\\|[\x07\x18\x1a]|\x1b(?=[^\\])")
_STILL = re.compile(r"\x1b\[[\d;:]*m|\x1b\][^\x00-\x1f\x7f-\x9f]*(?:\x07|\x1b\\)")
"""Sequences that change neither text nor cursor, of those that are frequent: colours, titles and links."""

_STILL_BYTES = re.compile(rb"\x1b\[[\d;:]*m")
_HARD = re.compile("[\x00-\x09\x0b\x0c\x0e-\x1f\x7f-\x9f]")
_EASY_BYTES = bytes(byte for byte in range(256) if byte in b"\r\n" or 0x20 <= byte != 0x7F)


def only_lines(data: bytes) -> bool:
    """:returns: whether output is nothing but lines, perhaps coloured: those are read quickly."""
    still = _STILL_BYTES.sub(b"", data) if b"\x1b" in data else data
    if still.translate(None, _EASY_BYTES):
        return False
    return still.count(b"\r") == still.count(b"\r\n") + still.endswith(b"\r")


def _whole_lines(text: str) -> bool:
    """:returns: whether it is nothing but printable text and ends of lines."""
    return text.count("\r") == text.count("\n") == text.count("\r\n") and _HARD.search(text) is None


class OutputReader:
    """:param page: what the output is written on."""

    def __init__(self, page: Page) -> None:
        self._page = page
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._rest = ""
        self._in_string = False
        self._last = ""
        self._line_mode = False

    def feed(self, data: bytes) -> None:
        """Take output, cut anywhere; much at once is faster."""
        text = self._rest + self._decoder.decode(data)
        self._rest = ""
        if not self._in_string and len(text) > PLAIN_LEAST:
            whole = text.removesuffix("\r")
            still = _STILL.sub("", whole) if "\x1b" in whole else whole
            if _whole_lines(still) and self._page.plain(still.split("\r\n")):
                self._rest, self._last = text[len(whole) :], still[-1:]
                return
        at, last = 0, text.rfind("\x1b")
        while at < len(text):
            at = self._skip_string(text, at) if self._in_string else self._token(text, at, last)

    def _token(self, text: str, at: int, last: int) -> int:
        """
        :param last: where the last sequence begins: no other may have no end.
        :returns: where the next one begins.
        """
        cut = _UNFINISHED.match(text, at) if at in (last, len(text) - 1) else None
        if cut is not None and len(cut[0]) < SEQUENCE_LIMIT:
            self._rest = cut[0]
            return len(text)
        found = _TOKEN.match(text, at)
        assert found is not None  # any character is a control character or text
        kind = found.lastgroup
        if kind == "text":
            self._last = next((letter for letter in reversed(found[0]) if width(letter)), self._last)
            self._page.write(found[0])
        elif kind == "line":
            self._page.new_line()
        elif kind == "final":
            self._sequence(found["numbers"], found["middle"], found["final"])
        elif kind == "string":
            self._in_string = True
        elif kind == "chosen":
            self._page.choose_set(found["set"] == ")", found["chosen"] in "02")
        elif kind == "escape":
            self._escape(found["escape"])
        else:
            self._control(found["control"])
        return found.end()

    def _skip_string(self, text: str, at: int) -> int:
        end = _STRING_END.search(text, at)
        if end is None:
            self._rest = "\x1b" if text.endswith("\x1b") else ""
            return len(text)
        self._in_string = False
        return end.start() if end[0] == "\x1b" else end.end()

    def _control(self, character: str) -> None:
        page = self._page
        if character in "\n\x0b\x0c":
            page.new_line() if self._line_mode else page.line_feed()
        elif character == "\r":
            page.x = 0
        elif character == "\b":
            page.move(-1, 0)
        elif character == "\t":
            page.tab(1)
        elif character in "\x0e\x0f":
            page.shift(character == "\x0e")

    def _escape(self, what: str) -> None:
        if what == "c":
            self._last, self._line_mode = "", False
        if action := _ESCAPES.get(what):
            action(self._page)

    def _sequence(self, numbers: str, middle: str, final: str) -> None:
        if numbers and min(numbers) < " ":  # a terminal obeys control characters at once
            for character in numbers:
                if character < " ":
                    self._control(character)
            numbers = "".join(character for character in numbers if character >= " ")
        private, values = _parameters(numbers)
        if middle or private:
            self._private(private, middle, final, values)
        elif final in "hl":
            self._mode(values, final == "h")
        elif final == "b":
            self._page.write(self._last * (values[0] or 1))
        elif action := _SEQUENCES.get(final):
            action(self._page, values[0], values[1] if len(values) > 1 else 0)

    def _mode(self, values: Sequence[int], on: bool) -> None:
        if 4 in values:
            self._page.set_mode("insert", on)
        if 20 in values:
            self._line_mode = on

    def _private(self, private: str, middle: str, final: str, values: Sequence[int]) -> None:
        page = self._page
        if (private, middle, final) == ("", "!", "p"):
            page.soft_reset()
        elif private == "?" and not middle and final in "JK":
            (page.erase_display if final == "J" else page.erase_line)(values[0])
        elif private == "?" and not middle and final in "hl":
            for value in values:
                self._private_mode(value, final == "h")

    def _private_mode(self, number: int, on: bool) -> None:
        page = self._page
        if number in (6, 7):
            page.set_mode("origin" if number == 6 else "wrap", on)
        elif number in (47, 1047):
            page.alternate(on)
        elif number == 1048:
            (page.save if on else page.restore)()
        elif number == 1049 and on:
            page.save()
            page.alternate(True)
            page.erase_display(2)
        elif number == 1049:
            page.alternate(False)
            page.restore()


@lru_cache(4096)
def _parameters(numbers: str) -> tuple[str, tuple[int, ...]]:
    """:returns: what makes a sequence private, and its numbers."""
    private = numbers[:1] if numbers[:1] in ("?", ">", "<", "=") else ""
    return private, tuple(_number(part) for part in numbers[len(private) :].split(";"))


def _number(text: str) -> int:
    digits = text.partition(":")[0]
    return min(int(digits), COUNT_LIMIT) if digits.isdigit() and len(digits) < 10 else COUNT_LIMIT if digits else 0


_ESCAPES: dict[str, Callable[[Page], None]] = {
    "7": Page.save,
    "8": Page.restore,
    "D": Page.line_feed,
    "E": Page.new_line,
    "M": Page.reverse_feed,
    "c": Page.reset,
    "#8": lambda page: page.erase_display(2),
}
"""What follows ESC, but for sequences and strings."""

_SEQUENCES: dict[str, Callable[[Page, int, int], None]] = {
    "A": lambda page, n, _: page.move(0, -(n or 1)),
    "B": lambda page, n, _: page.move(0, n or 1),
    "C": lambda page, n, _: page.move(n or 1, 0),
    "D": lambda page, n, _: page.move(-(n or 1), 0),
    "E": lambda page, n, _: page.move(-page.columns, n or 1),
    "F": lambda page, n, _: page.move(-page.columns, -(n or 1)),
    "G": lambda page, n, _: page.place((n or 1) - 1),
    "H": lambda page, n, m: page.place((m or 1) - 1, (n or 1) - 1),
    "I": lambda page, n, _: page.tab(n or 1),
    "J": lambda page, n, _: page.erase_display(n),
    "K": lambda page, n, _: page.erase_line(n),
    "L": lambda page, n, _: page.insert_lines(n or 1),
    "M": lambda page, n, _: page.delete_lines(n or 1),
    "P": lambda page, n, _: page.delete(n or 1),
    "S": lambda page, n, _: page.scroll_up(n or 1),
    "T": lambda page, n, _: page.scroll_down(n or 1),
    "X": lambda page, n, _: page.erase(n or 1),
    "Z": lambda page, n, _: page.tab(-(n or 1)),
    "@": lambda page, n, _: page.insert(n or 1),
    "`": lambda page, n, _: page.place((n or 1) - 1),
    "a": lambda page, n, _: page.move(n or 1, 0),
    "d": lambda page, n, _: page.place(None, (n or 1) - 1),
    "e": lambda page, n, _: page.move(0, n or 1),
    "f": lambda page, n, m: page.place((m or 1) - 1, (n or 1) - 1),
    "r": lambda page, n, m: page.set_margins((n or 1) - 1, (m or page.rows) - 1),
    "s": lambda page, n, _: page.save(),
    "u": lambda page, n, _: page.restore(),
}
"""Control sequences by their last character; the numbers are 0 where they are left out."""
