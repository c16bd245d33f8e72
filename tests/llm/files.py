"""Files for one test."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase


def written(test: SynchronousTestCase, content: bytes, name: str = "file") -> str:
    """:returns: path of a new file with this content, in a directory that is removed after the test."""
    directory = Path(tempfile.mkdtemp())
    test.addCleanup(shutil.rmtree, directory)
    (directory / name).write_bytes(content)
    return str(directory / name)
