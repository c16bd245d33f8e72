"""The pictures of screens in README and documentation show what the program shows."""

from __future__ import annotations

import html
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.sandbox.spec import Kind, Sandbox
from tests.machine import demand_sandbox
from tests.programs import program

FIGURES = Path(__file__).resolve().parents[1] / "docs" / "figures"
LIMIT = 180
"""Seconds for all pictures (they took 5)."""


def words(picture: str) -> list[str]:
    """:returns: the text of a picture, without what differs from run to run: times, directories, digests, users."""
    text = html.unescape(" ".join(re.findall(r"<text[^>]*>([^<]*)</text>", picture)))
    text = re.sub(r"/ic-\w{8}|/ic-\w{1,7}(?=…)|digest\s[0-9a-f]+|local:\w+", "", text)
    text = re.sub(r"\d[\d.:]*\s(ms|s|min|h)\b", "0 s", text)
    return re.sub(r"\d+", "0", text).split()


class PictureTests(SynchronousTestCase):
    """A change of what is on the screen needs new pictures: ``python docs/figures/screens.py docs/figures``."""

    def test_they_are_of_this_version(self) -> None:
        program("tmux")
        demand_sandbox(Sandbox(kind=Kind.BUBBLEWRAP))  # which they name
        made = Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, made)
        subprocess.run([sys.executable, FIGURES / "screens.py", made], check=True, timeout=LIMIT)
        names = sorted(path.name for path in FIGURES.glob("screen-*.svg"))
        self.assertEqual(names, sorted(path.name for path in made.iterdir()))
        for name in names:
            self.assertEqual(words((FIGURES / name).read_text()), words((made / name).read_text()), name)
