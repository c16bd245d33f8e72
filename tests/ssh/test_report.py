"""The report on a session, over SSH."""

from __future__ import annotations

import json

from ironcurtain.operations import Role
from tests.ssh.test_client import SshTestCase


class ReportTests(SshTestCase):
    async def test_report_is_that_of_the_command_and_so_is_its_status(self) -> None:
        ada = self.server.listed("ada", Role.VIEW)
        session = await self.session()
        paths = self.server.home.session(session.id)
        for words in (str(session.number), "last"):
            status, out, _ = await self.said(ada, "report", words)
            self.assertEqual((status, out.splitlines()[-1]), (0, "1 session, 0 with a log that is not intact"))
        status, out, _ = await self.said(ada, "report", session.id, "--json")
        self.assertEqual([each["id"] for each in json.loads(out)], [session.id])
        paths.audit.write_bytes(paths.audit.read_bytes().replace(b'"time":"', b'"time":"1', 1))
        self.assertEqual((await self.said(ada, "report", "1"))[0], 1)
