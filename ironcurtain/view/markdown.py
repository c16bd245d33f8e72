"""The Markdown that models write, as lines of a terminal: headings, lists, emphasis and code. Nothing is left out."""

from __future__ import annotations

import re

from ironcurtain.text.columns import Line, Span, Style
from ironcurtain.view.look import Look

_FENCE = re.compile(r"(?P<fence>`{3,}|~{3,})(?P<language>[^`]*)\Z")
_HEADING = re.compile(r"#{1,6} +(?P<words>.*?)(?: +#+)?\Z")
_ITEM = re.compile(r"(?P<indent> *)[-*+] +(?P<words>.*)\Z")
_MARKED = re.compile(
    r"(?P<code>`+)(?P<coded>[^`](?:.*?[^`])?)(?P=code)(?!`)"
    r"|(?P<strong>\*\*|__)(?=\S)(?P<stressed>.{1,400}?)(?<=\S)(?P=strong)"
)


class Markdown:
    """One text, a line at a time."""

    def __init__(self) -> None:
        self._fence = ""

    def line(self, text: str, look: Look) -> tuple[Line, int]:
        """
        :param text: a line as the model wrote it.
        :returns: the line to show, and the columns that its other rows are indented by.
        """
        stripped = text.lstrip(" ")
        indent = len(text) - len(stripped)
        if self._fence:
            if stripped.startswith(self._fence) and not stripped.strip(self._fence[0] + " "):
                self._fence = ""
                return (Span(look.text(text), "dim"),), indent
            return (Span(look.text(text), "code"),), indent
        if fence := _FENCE.match(stripped):
            self._fence = fence["fence"]
            return (Span(look.text(text), "dim"),), indent
        if heading := _HEADING.match(stripped):
            return tuple(Span(span.text, "title") for span in _spans(heading["words"], look)), 0
        if item := _ITEM.match(text):
            first = f"{item['indent']}{look.signs.item}"
            return (Span(first), *_spans(item["words"], look)), len(first)
        return _spans(text, look), indent


def _spans(text: str, look: Look) -> Line:
    spans, shown = list[Span](), 0

    def add(piece: str, style: Style = "") -> None:
        if piece:
            spans.append(Span(look.text(piece), style))

    for match in _MARKED.finditer(text):
        add(text[shown : match.start()])
        add(match["coded"] or match["stressed"], "code" if match["coded"] else "bold")
        shown = match.end()
    add(text[shown:])
    return tuple(spans) or (Span(""),)
