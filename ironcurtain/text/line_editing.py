"""What the keys do that edit a line, as they do in a shell."""

from __future__ import annotations


def edited(before: str, after: str, key: str) -> tuple[str, str] | None:
    """
    :param before: the text before the cursor; ``after`` is the rest.
    :param key: such as ``backspace`` and ``ctrl-w``.
    :returns: both after the key; ``None``: it edits nothing.
    """
    match key:
        case "backspace" | "ctrl-h":
            return before[:-1], after
        case "delete" | "ctrl-d":
            return before, after[1:]
        case "left" | "ctrl-b":
            return before[:-1], before[-1:] + after
        case "right" | "ctrl-f":
            return before + after[:1], after[1:]
        case "home" | "ctrl-a":
            return "", before + after
        case "end" | "ctrl-e":
            return before + after, ""
        case "ctrl-u":
            return "", after
        case "ctrl-k":
            return before, ""
        case "ctrl-w" | "alt-backspace":
            return _without_word(before), after
        case "alt-b":
            kept = _without_word(before)
            return kept, before[len(kept) :] + after
        case "alt-f":
            word = _first_word(after)
            return before + word, after[len(word) :]
        case "alt-d":
            return before, after[len(_first_word(after)) :]
        case _:
            return None


def _without_word(text: str) -> str:
    """:returns: a text without its last word and what follows that."""
    return text.rstrip()[: text.rstrip().rfind(" ") + 1]


def _first_word(text: str) -> str:
    """:returns: the begin of a text, to the end of its first word."""
    blanks = len(text) - len(text.lstrip())
    end = text.find(" ", blanks)
    return text if end < 0 else text[:end]
