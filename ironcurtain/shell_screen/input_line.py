"""A line of text that a person types and edits."""

from __future__ import annotations

from ironcurtain.terminal.key_reader import Key
from ironcurtain.text.columns import cells, fitting
from ironcurtain.text.display import has_hidden_text, one_line
from ironcurtain.text.line_editing import edited

TEXT_LIMIT = 8000
"""Most characters of a line."""


def without_meaning(key: Key) -> str:
    """:returns: what a person is told whose key has no meaning."""
    return f"{one_line(key.data.decode('utf-8', 'replace'), 20)} does nothing here"


class InputLine:
    """
    Keys edit it as they do in a shell.

    :param label: what is shown before it.
    """

    def __init__(self, label: str) -> None:
        self.label = label
        self.text = ""
        self._at = 0

    def press(self, key: Key) -> str:
        """
        Take a key that is neither Enter nor Esc.

        :returns: what was not taken, and why; empty if all was.
        """
        before, after = self.text[: self._at], self.text[self._at :]
        if not key.text:
            changed = edited(before, after, key.name)
            before, after = changed or (before, after)
            self.text, self._at = before + after, len(before)
            return "" if changed else f"not taken: {without_meaning(key)}"
        text = " ".join(key.text.split("\n")).replace("\r", "").replace("\t", " ")
        added = "".join(c for c in text if not has_hidden_text(c))
        room = TEXT_LIMIT - len(self.text)
        before += added[:room]
        self.text, self._at = before + after, len(before)
        if len(added) > room:
            return f"not taken: {len(added) - room} characters, since a line has at most {TEXT_LIMIT}"
        return "not taken: characters that cannot be seen" if len(added) < len(text) else ""

    def visible(self, width: int) -> tuple[str, int]:
        """
        :param width: columns.
        :returns: the part of the text round the cursor that fits, and the cursor's column in it.
        """
        start = 0
        while cells(self.text[start : self._at]) >= max(width, 1) and start < self._at:
            start += max(width // 2, 1)
        start = min(start, self._at)
        return self.text[start : fitting(self.text, start, max(width - 1, 0))], cells(self.text[start : self._at])
