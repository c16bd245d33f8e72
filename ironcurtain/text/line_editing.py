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
        case "ctrl-w":
            return before.rstrip()[: before.rstrip().rfind(" ") + 1], after
        case _:
            return None
