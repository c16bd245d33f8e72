"""Run the command as ``python -m ironcurtain.cli``."""

from __future__ import annotations

from ironcurtain.cli import main

main()
