"""Output of programs as terminals get it, with the promise in places that are hard to see, and near-misses."""

from __future__ import annotations

PROMISE = "LOOP_COMPLETE"
PROMPT = "Fix the tests. When everything is done, print LOOP_COMPLETE on a line of its own, and stop."

CLEAR = b"\x1b[2J\x1b[3J\x1b[H"

MADE: dict[str, bytes] = {
    "alone": b"LOOP_COMPLETE\r\n",
    "at the end of the output": b"LOOP_COMPLETE",
    "in Markdown": b"**LOOP_COMPLETE**\r\n",
    "with a bullet and a full stop": "● LOOP_COMPLETE.\r\n".encode(),
    "in quotes": b"`LOOP_COMPLETE`\r\n",
    "coloured in the middle": b"\x1b[1mLOOP\x1b[32m_COM\x1b[0mPLETE\r\n",
    "each letter by itself": b"".join(b"\x1b[3%dm%c" % (n % 8, letter) for n, letter in enumerate(b"LOOP_COMPLETE")),
    "a title in the middle": b"LOOP_\x1b]0;working\x07COMPLETE\r\n",
    "a link round it": b"\x1b]8;;http://x/\x1b\\LOOP_COMPLETE\x1b]8;;\x1b\\\r\n",
    "wrapped at the margin": b" " * 30 + b"LOOP_COMPLETE\r\n",
    "wrapped by the program": b"-" * 34 + b" LOOP_\r\nCOMPLETE\r\n",
    "scrolled off": b"LOOP_COMPLETE\r\n" + b"later\r\n" * 500,
    "scrolled off, wrapped": b"-" * 30 + b" LOOP_COMPLETE\r\n" + b"later\r\n" * 50,
    "among many lines": b"early\r\n" * 400 + b"LOOP_COMPLETE\r\n" + b"later\r\n" * 400,
    "on the alternate screen": b"\x1b[?1049h\x1b[3;3HLOOP_COMPLETE\x1b[?1049l",
    "on an older alternate screen": b"\x1b[?47h\x1b[3;3HLOOP_COMPLETE\x1b[?47l",
    "scrolled off the alternate screen": (
        b"\x1b[?1049h\x1b[?25lLOOP_COMPLETE\r\n" + b"later\r\n" * 50 + b"\x1b[?25h\x1b[?1049l"
    ),
    "erased at once": b"LOOP_COMPLETE\r\x1b[2K",
    "cleared at once": b"LOOP_COMPLETE\r\n" + CLEAR + b"something else\r\n",
    "written over": b"LOOP_COMPLETE\rsomething else",
    "its line deleted": b"LOOP_COMPLETE\x1b[M",
    "lines put in above it": b"LOOP_COMPLETE\r\n\x1b[H\x1b[9L",
    "scrolled within margins": b"\x1b[2;4r\x1b[4;1HLOOP_COMPLETE" + b"\n" * 5 + b"\x1b[r",
    "reset": b"LOOP_COMPLETE\x1bc",
    "written backwards": b"\x1b[1;13HE" + b"".join(b"\b\b%c" % letter for letter in b"TELPMOC_POOL"),
    "mended by a program that writes only what changes": b"LOOP_XXXXXXXX\x1b[8DCOMPLETE\r\n",
    "inserted in the middle": b"LOOPLETE\x1b[5G\x1b[5@_COMP\r\n",
    "drawn in steps by a full-screen program": b"".join(
        b"\x1b[H\x1b[J\x1b[1mAgent\x1b[0m\r\n\r\n\xe2\x8f\xba " + b"LOOP_COMPLETE"[:n] for n in range(14)
    ),
    "redrawn by one that goes up and erases": b"".join(
        b"\x1b[2K\x1b[1A\x1b[2K\x1b[G\xe2\x8f\xba " + b"LOOP_COMPLETE"[:n] + b"\r\nworking" for n in range(14)
    ),
    "with a status line that is drawn meanwhile": b"".join(
        b"%c\x1b7\x1b[10;1H\x1b[2K%d\x1b8" % (letter, n) for n, letter in enumerate(b"LOOP_COMPLETE")
    ),
    "in a frame": "╭──────────────────╮\r\n│ LOOP_COMPLETE    │\r\n╰──────────────────╯\r\n".encode(),
    "after the prompt, on the screen of an agent": (
        b"> Fix the tests. When everything is done,\r\n  print LOOP_COMPLETE on a line of its own,\r\n  and stop."
        b"\r\n\r\n"
        b"\xe2\x8f\xba I have mended them.\r\n\r\n  LOOP_COMPLETE\r\n"
    ),
    "the program failed in a sequence": b"LOOP_COMPLETE\x1b[",
    "after bytes that are no text": b"\xff\xfe\x80 LOOP_COMPLETE\r\n",
    "after a NUL": b"LOOP_\x00COMPLETE\r\n",
    "a control character within a sequence": b"LOOP\x1b[\r4C_COMPLETE\r\n",
}
"""What ends a loop, on a terminal of 40 columns and 12 rows."""

MISSED: dict[str, bytes] = {
    "nothing": b"",
    "not reached": b"I have not reached LOOP_COMPLETE yet\r\n",
    "at the end of a sentence": b"All tests pass. LOOP_COMPLETE.\r\n",
    "a line that begins with it": b"LOOP_COMPLETE is not reached yet\r\n",
    "a question about it": b"Is this LOOP_COMPLETE?\r\n",
    "in a sentence that the terminal wraps": b"I have not reached the state of all is  LOOP_COMPLETE\r\n",
    "another case": b"loop_complete\r\n",
    "part of it": b"LOOP_COMPLET\r\n",
    "a longer word": b"LOOP_COMPLETED\r\n",
    "a longer word before": b"NOLOOP_COMPLETE\r\n",
    "a longer word with a stroke": b"LOOP_COMPLETE_NOT\r\n",
    "a word with a hyphen": b"PRE-LOOP_COMPLETE\r\n",
    "a file": b"see LOOP_COMPLETE.md\r\n",
    "a path": b"docs/LOOP_COMPLETE\r\n",
    "a longer word, coloured": b"LOOP_COMPLETE\x1b[31mD\x1b[0m\r\n",
    "a longer word, wrapped": b"x" * 27 + b"LOOP_COMPLETED\r\n",
    "a longer word, in steps": b"".join(
        b"\x1b[H\x1b[J\xe2\x8f\xba " + b"LOOP_COMPLETED"[:n] + b"\r\n" for n in range(15)
    ),
    "a longer word, while a status line is drawn": b"".join(
        b"%c\x1b7\x1b[10;1H\x1b[2K%d\x1b8" % (letter, n) for n, letter in enumerate(b"LOOP_COMPLETED")
    ),
    "only in a title": b"\x1b]0;LOOP_COMPLETE\x07",
    "only in a link": b"\x1b]8;;http://LOOP_COMPLETE/\x1b\\here\x1b]8;;\x1b\\",
    "only in what a terminal keeps for itself": b"\x1bPLOOP_COMPLETE\x1b\\",
    "lines that are lines": b"\x1b(0LOOP_COMPLETE\x0e".replace(b"LOOP", b"loop") + b"\x0f\x1b(B",
    "two columns side by side": b"LOOP_" + b" " * 10 + b"COMPLETE\r\n",
    "the prompt": PROMPT.encode() + b"\r\n",
    "the prompt, wrapped in a frame": "│ Fix the tests. When     │\r\n│ everything is done, print │\r\n"
    "│ LOOP_COMPLETE on a line   │\r\n│ of its own, and stop.     │\r\n".encode(),
    "the prompt, coloured": b"\x1b[2m> " + PROMPT.replace("LOOP", "\x1b[1mLOOP\x1b[22m").encode() + b"\x1b[0m\r\n",
    "the prompt, again and again": b"".join(CLEAR + PROMPT.encode() + b"\r\n" for _ in range(5)),
    "the prompt, in steps": b"".join(b"\r\x1b[2K" + PROMPT[-55 : -55 + n].encode() for n in range(40)),
    "the prompt, cut at the top of a full screen": (
        b"\x1b[?1049h\x1b[HLOOP_COMPLETE on a line of its own, and stop.\r\n"
    ),
    "the instruction, in other words": b"I will print LOOP_COMPLETE later.\r\n",
    "the instruction, as a thought": b"They want LOOP_COMPLETE on a line. Not yet.\r\n",
}
"""What does not."""
