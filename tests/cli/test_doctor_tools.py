from __future__ import annotations

import os

from ironcurtain.cli.doctor_tools import tools
from ironcurtain.home.layout import find_home
from ironcurtain.mcp_proxy.pins import PinFiles
from tests.cli.test_commands import CommandCase


class ToolsTests(CommandCase):
    def test_why_tools_are_withheld(self) -> None:
        where = find_home(self.environ, os.getuid())
        where.path.mkdir(mode=0o700)
        pins = PinFiles(where.tool_definitions, lambda: 0.0).of("notes")
        hidden = {"name": "hidden", "description": "a\u202eb"}
        pins.see([{"name": "other", "description": "one"}, hidden])
        pins.see([{"name": "other", "description": "two"}, hidden])
        found = {finding.detail for finding in tools(where) if finding.what == "tools of notes"}
        self.assertEqual(
            found,
            {
                "withheld, as their definitions contain invisible text: hidden",
                "withheld, as their definitions changed: other",
            },
        )
