"""
Whether this process can start programs of IronCurtain's own.

A server that root started, and that has another account now, may not reach where root has installed it.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1]


def unreached() -> str | None:
    """:returns: whether Python or this package is out of reach, and what to do, in words; ``None`` if neither is."""
    needed = ((sys.executable, os.X_OK), (os.__file__, os.R_OK), (str(PACKAGE / "__init__.py"), os.R_OK))
    if (path := next((path for path, access in needed if not os.access(path, access)), None)) is None:
        return None
    return (
        f"uid {os.geteuid()} cannot reach {path}: install Python and IronCurtain where every account enters, such as "
        "below /opt"
    )
