"""Pieces of programs' output, out of which tests make what no program would write."""

from __future__ import annotations

TEXTS = (
    b"hello",
    b"\r\n",
    b"\n",
    b"\r",
    b"\t",
    b"\b",
    b"x" * 50,
    "wide 中文".encode(),
    "e\u0301".encode(),
    "é→".encode(),
    b"\xff\xfe",
)

STYLES = (
    b"\x1b[31m",
    b"\x1b[1;4;48;5;20m",
    b"\x1b[38;2;1;2;3m",
    b"\x1b[0m",
    b"\x1b[7m",
    b"\x1b[9;53m",
    b"\x1b]8;;http://x\x1b\\",
    b"\x1b]8;;\x1b\\",
    b'\x1b[1"q',
    b'\x1b[0"q',
)

MOVES = (
    b"\x1b[H",
    b"\x1b[5;10H",
    b"\x1b[24;80H",
    b"\x1b[2J",
    b"\x1b[K",
    b"\x1b[1J",
    b"\x1b[J",
    b"\x1b[L",
    b"\x1b[M",
    b"\x1b[3P",
    b"\x1b[2@",
    b"\x1b[10X",
    b"\x1b[3b",
    b"\x1b[S",
    b"\x1b[T",
    b"\x1bM",
    b"\x1bD",
    b"\x1bE",
    b"\x1b#8",
    b"\x1b7",
    b"\x1b8",
    b"\x1b[s",
    b"\x1b[u",
)

SETTINGS = (
    b"\x1b[3;10r",
    b"\x1b[r",
    b"\x1b[5;15s",
    b"\x1bH",
    b"\x1b[3g",
    b"\x1b(0",
    b"\x1b(B",
    b"\x1b)0",
    b"\x0e",
    b"\x0f",
    b"\x1b=",
    b"\x1b>",
    b"\x1b[4h",
    b"\x1b[4l",
    b"\x1b[20h",
    b"\x1b[>1u",
    b"\x1b[<u",
    b"\x1b[=5u",
    b"\x1b[>4;2m",
    b"\x1b[2 q",
    b"\x1b[5 q",
    b"\x1b[0 q",
    b"\x1b]0;title\x07",
    b"\x1b[!p",
    b"\x1bc",
    *(b"\x1b[?%dh" % n for n in (1, 5, 6, 25, 45, 47, 69, 1000, 1002, 1004, 1006, 1047, 1049, 2004, 2026, 2048)),
    *(b"\x1b[?%dl" % n for n in (1, 6, 7, 25, 47, 1000, 1047, 1049, 2004, 2026)),
    b"\x1b[?7h",
)

WIDE = ("wide 中文".encode(),)
LINE_DRAWING = (b"\x1b(0", b"\x1b)0")

PIECES = TEXTS + STYLES + MOVES + SETTINGS
