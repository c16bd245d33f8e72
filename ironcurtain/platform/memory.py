"""How much memory this machine has to spare."""

from __future__ import annotations

import re
from pathlib import Path

_AVAILABLE = re.compile(r"^MemAvailable:\s+(\d+) kB$", re.MULTILINE)


def available_memory() -> int | None:
    """:returns: bytes that programs could use now without swapping (proc(5)); ``None``: unknown, as on macOS."""
    try:
        found = _AVAILABLE.search(Path("/proc/meminfo").read_text())
    except OSError:
        return None
    return None if found is None else int(found[1]) * 1024
