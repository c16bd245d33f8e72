"""Makes ``twistd ironcurtain`` known. Imports nothing of ours: Twisted loads every plugin whenever it looks for one."""

from __future__ import annotations

from twisted.application.service import ServiceMaker

ironcurtain = ServiceMaker(
    "IronCurtain",
    "ironcurtain.tap",
    "Run AI agents nobody trusts, and keep the last word.",
    "ironcurtain",
)
