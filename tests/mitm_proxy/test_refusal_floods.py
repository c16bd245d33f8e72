"""Refusals without end fill neither the audit log nor the list of what was refused."""

from __future__ import annotations

from ironcurtain.network.refusal_records import REFUSALS
from tests.mitm_proxy.open_hosts import OpenBase, get

HOST = "api.anthropic.com"


class FloodTests(OpenBase):
    """On real sockets."""

    async def test_refusals_of_one_rule_are_recorded_in_a_bounded_number_and_counted(self) -> None:
        bench = await self.open_bench()
        client = await bench.tunnel(authority=f"{HOST}:80", name=HOST)
        for _ in range(100):
            client.send(get(HOST, "/v1/files"))
            self.assertEqual((await client.response())[0], 403)
        client.send(get(f"{HOST}:80", "/", method="TRACE"))  # another rule's is not lost among them
        self.assertEqual((await client.response())[0], 403)
        await bench.proxy.stop()
        rules = [record["rule"] for record in bench.records("model-request")]
        self.assertEqual(sorted(map(rules.count, set(rules))), [1, REFUSALS])
        self.assertEqual([record["count"] for record in bench.records("unrecorded")], [100 - REFUSALS])
