"""The MCP programs of other people that ``.ci/run`` installs by npm for tests, and the Node that runs them."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from unittest import SkipTest

from tests.programs import find, program

MODULES = Path(os.environ.get("IRONCURTAIN_TEST_NODE", "."), "node_modules")

NODE_VERSION = 22
"""The oldest Node that the conformance suites run on."""


def module(*parts: str) -> Path:
    """
    Find a file of a package.

    :returns: its path.
    :raises SkipTest: it is not installed, or there is no Node to run it.
    """
    if not (path := MODULES.joinpath(*parts)).exists():
        package = "/".join(parts[: 2 if parts[0].startswith("@") else 1])
        raise SkipTest(f"{package} is not installed (IRONCURTAIN_TEST_NODE names no such directory; .ci/run makes one)")
    program("node")
    return path


def node() -> str:
    """
    Find a Node that is new enough for the conformance suites.

    :returns: its path.
    :raises SkipTest: there is none.
    """
    for found in (str(MODULES / "node" / "bin" / "node"), find("node")):
        if found and Path(found).exists():
            version = subprocess.run([found, "--version"], capture_output=True, text=True, check=True).stdout
            if int(version.removeprefix("v").partition(".")[0]) >= NODE_VERSION:
                return found
    raise SkipTest(f"there is no Node {NODE_VERSION} or newer (.ci/run installs one for tests)")
