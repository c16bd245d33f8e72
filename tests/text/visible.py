"""What of a text nobody sees."""

from __future__ import annotations

from ironcurtain.text.display import shown_only


def invisible(text: str) -> list[str]:
    """
    :returns: the characters that nobody sees, besides line ends and tabs. Letters that look like others are not among
        them: what else is on the line decides which of them are escaped.
    """
    return [character for character in text if character not in "\n\r\t" and not shown_only(character)]
