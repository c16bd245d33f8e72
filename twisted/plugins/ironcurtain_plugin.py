"""Makes ``twistd ironcurtain`` known. Imports nothing of ours: Twisted loads every plugin whenever it looks for one."""

from __future__ import annotations

from twisted.application.service import ServiceMaker

ironcurtain = ServiceMaker(
    "IronCurtain",
    "ironcurtain.tap",
    "Run AI agents that you do not have to trust.",
    "ironcurtain",
)
