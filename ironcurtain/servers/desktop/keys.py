"""Combinations of keys as they are written in calls: ``Ctrl+Shift+s``, ``Enter``, ``Alt+f``."""

from __future__ import annotations

import re

import msgspec

from ironcurtain.servers.desktop.model import DesktopError, shown

_MODIFIERS = {"ctrl": "Ctrl", "control": "Ctrl", "shift": "Shift", "alt": "Alt"}

_NAMED = {
    "enter": "Return", "return": "Return", "escape": "Escape", "esc": "Escape", "tab": "Tab", "space": "space",
    "backspace": "BackSpace", "delete": "Delete", "insert": "Insert", "home": "Home", "end": "End",
    "pageup": "Page_Up", "pagedown": "Page_Down", "up": "Up", "down": "Down", "left": "Left", "right": "Right",
    "arrowup": "Up", "arrowdown": "Down", "arrowleft": "Left", "arrowright": "Right", "menu": "Menu",
    "plus": "plus", **{f"f{number}": f"F{number}" for number in range(1, 13)},
}  # fmt: skip
"""Names of keys and their symbols (keysymdef.h)."""

_SIGNS = {
    " ": "space", "!": "exclam", '"': "quotedbl", "#": "numbersign", "$": "dollar", "%": "percent", "&": "ampersand",
    "'": "apostrophe", "(": "parenleft", ")": "parenright", "*": "asterisk", "+": "plus", ",": "comma", "-": "minus",
    ".": "period", "/": "slash", ":": "colon", ";": "semicolon", "<": "less", "=": "equal", ">": "greater",
    "?": "question", "@": "at", "[": "bracketleft", "\\": "backslash", "]": "bracketright", "^": "asciicircum",
    "_": "underscore", "`": "grave", "{": "braceleft", "|": "bar", "}": "braceright", "~": "asciitilde",
}  # fmt: skip

_OF_DESKTOP = re.compile(
    r"(?=.*Alt\+)(?:.*\+)?(?:F[0-9]+|Tab|Escape|space|Up|Down|Left|Right|Delete|BackSpace)|Ctrl\+Alt\+.*|Ctrl\+Escape"
)
"""Combinations that window managers and the system take for themselves, whichever window is active."""


class Chord(msgspec.Struct, frozen=True):
    """
    Keys that are pressed together.

    :param modifiers: of ``Ctrl``, ``Alt`` and ``Shift``, in this order.
    :param symbol: name of the key's symbol.
    """

    modifiers: tuple[str, ...]
    symbol: str

    def __str__(self) -> str:
        return "+".join((*self.modifiers, self.symbol))


def parse(text: str) -> Chord:
    """:raises DesktopError: it is no combination, or one that the desktop takes for itself."""
    plus = text == "+" or text.endswith("++")
    *held, key = [*text[: -2 if len(text) > 1 else -1].split("+"), "plus"] if plus else text.split("+")
    modifiers = {_MODIFIERS.get(word.strip().lower(), "") for word in held if word.strip()}
    key = key.strip() or key
    symbol = _NAMED.get(key.lower()) or _SIGNS.get(key) or (key if re.fullmatch(r"[A-Za-z0-9]", key) else "")
    if not symbol or "" in modifiers:
        raise DesktopError(
            f"{shown(text, 60)} is no combination of keys: write Ctrl+s, Shift+F10, Enter or Alt+f; keys of the desktop"
            " itself, such as Super, are not pressed"
        )
    chord = Chord(tuple(name for name in ("Ctrl", "Alt", "Shift") if name in modifiers), symbol)
    if _OF_DESKTOP.fullmatch(str(chord)):
        raise DesktopError(f"{chord} belongs to the desktop, not to an application; use the tool window")
    return chord
