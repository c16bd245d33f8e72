from __future__ import annotations

import json
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

    def test_tools_of_a_server_that_was_never_started_are_not_known(self) -> None:
        where = find_home(self.environ, os.getuid())
        where.path.mkdir(mode=0o700)
        names = ("memory", "notes", "tickets")  # the first has annotations that are shipped
        where.mcp_servers.write_text(json.dumps({"mcpServers": {name: {"command": "x"} for name in names}}))
        PinFiles(where.tool_definitions, lambda: 0.0).of("tickets").see([{"name": "search"}])
        found = {finding.what: (finding.detail, finding.mend) for finding in tools(where)}
        self.assertEqual(
            found.pop("tools of notes"),
            (
                "not known before its first start",
                "Start it once, to see how they are judged: ironcurtain mcp test notes",
            ),
        )
        self.assertIn("each call of its 1 tool asks", found.pop("tools of tickets")[0])
        self.assertEqual(found.keys(), {"tools"})
