"""
A member under somebody else's control: it has its key and its certificate, and says to another one what it likes.

Whatever it says decides nothing that its people may not decide, shows no argument that they may not see, starts
nothing, and costs the others nothing.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from twisted.internet.defer import Deferred
from twisted.trial.unittest import TestCase

from ironcurtain.control.wire import BODY_LIMIT, NAME_HEADER, ROLES_HEADER
from ironcurtain.operations.principal import owner
from tests.audit.doubles import scratch
from tests.fleet.doubles import SECRET, Victim, http

BOB, EVE, ADA = "local:bob", "local:eve", "local:ada"
"""Who may approve at ``evil``, who may look there, and whom only ``laptop`` may speak for."""

APPROVED = {"decision": "approved"}


@dataclass(frozen=True)
class Lie:
    """
    :param what: names it.
    :param status: that the answers to it have; ``None``: the stream ends without any.
    :param said: to the service; see :meth:`Victim.fill`.
    """

    what: str
    status: int | None
    said: bytes
    host: str = "evil"
    service: str = "control daemon"


def decision(what: str, status: int | None, who: str, host: str = "evil", **more: Any) -> Lie:
    """:returns: an approval with the right digest, unless it is told otherwise."""
    body = {**APPROVED, "digest": more.pop("digest", "{d}"), **more.pop("body", {})}
    return Lie(what, status, http("POST", more.pop("target", "/v1/escalations/{n}"), who, body, **more), host)


def get(what: str, status: int | None, target: str, who: str = EVE, host: str = "evil", **more: Any) -> Lie:
    """:returns: a request to look."""
    return Lie(what, status, http("GET", target, who, **more), host)


LIES = (
    decision("decision of nobody", 403, ""),
    decision("decision of a person of another host", 403, ADA),
    decision("decision of a person of another host, with that host", 403, f"{ADA}@laptop"),
    decision("decision of the victim's own user", 403, "local:root"),
    decision("decision of a person who may look, with all roles claimed", 403, EVE),
    decision("decision of a person without roles", 403, EVE, "blind"),
    decision("decision of anybody", 403, "*"),
    decision("decision of a name in another case", 403, "LOCAL:BOB"),
    decision("decision of a name with a space", 403, "local:bob x"),
    decision("decision of a name that is cut to one that may", 403, BOB + "x" * 200),
    decision("decision with a role that does not exist", 403, BOB, roles="approve,root"),
    decision("decision with no role claimed", 403, BOB, roles=""),
    decision("decision with a second name", 403, BOB, more=f"{NAME_HEADER}: {ADA}\r\n"),
    decision("decision with roles given twice", 403, EVE, more=f"{ROLES_HEADER}: approve\r\n"),
    decision("decision with a digest of other arguments", 409, BOB, digest="0" * 64),
    decision("decision without a digest, of what was not shown", 409, BOB, digest=None),
    decision("decision on a question of another host", 404, BOB, target="/v1/escalations/laptop/1"),
    decision("decision on a number of another host", 404, BOB, target="/v1/escalations/1125899906842625"),
    decision("decision on a question that does not exist", 404, BOB, target="/v1/escalations/77"),
    decision("decision that is neither yes nor no", 400, BOB, body={"decision": "expired"}),
    decision("decision that names who decides", 400, BOB, body={"by": ADA}),
    decision("decision that is kept, for what has no scope", 400, BOB, body={"keep": True}),
    decision("decision about minus one calls", 400, BOB, body={"calls": -1}),
    Lie("decision cut off", 400, http("POST", "/v1/escalations/{n}", BOB, b'{"decision": "appro')),
    Lie("decision in a query", 400, http("POST", "/v1/escalations/{n}?decision=approved&digest={d}", BOB)),
    Lie("decision by another method", 404, http("PUT", "/v1/escalations/{n}", BOB, APPROVED)),
    Lie("decision behind a method that is overridden", 404,
        http("GET", "/v1/escalations/{n}", BOB, APPROVED, "X-HTTP-Method-Override: POST\r\n")),
    Lie("all denied by a person who may look", 403, http("POST", "/v1/escalations/deny-all", EVE, {})),
    Lie("answer to a form that is none", 409, http("POST", "/v1/escalations/{n}/answer", BOB, {"content": {}})),
    get("list of questions, of a person of another host", 403, "/v1/escalations", ADA),
    get("list of questions, of a person without roles", 403, "/v1/escalations", EVE, "blind"),
    get("list of processes, of a host where nobody may look", 403, "/v1/processes", "", "blind"),
    get("events of a person without roles", 403, "/v1/sessions/{s}/events", EVE, "blind"),
    get("events, held by a person who may look", 403, "/v1/sessions/{s}/events?hold=1"),
    get("file of a person without roles", 403, "/v1/files/1/audit", EVE, "blind"),
    get("file outside the session", 404, "/v1/files/1/../../fleet.trust"),
    get("file outside the session, escaped", 404, "/v1/files/1%2f..%2faudit/log"),
    get("file of a session that does not exist", 404, "/v1/files/99/log"),
    get("path of another service", 404, "//evil/v1/escalations"),
    get("absolute target elsewhere", 404, "http://elsewhere/v1/escalations", BOB),
    Lie("start of a session", 403, http("POST", "/v1/sessions", BOB, {"kind": "plain", "task": "x"})),
    Lie("message to the agent", 403, http("POST", "/v1/sessions/{s}/messages", BOB, {"text": "x"})),
    Lie("end of the session", 403, http("DELETE", "/v1/sessions/{s}", BOB)),
    Lie("ticket for the terminal", 403, http("POST", "/v1/sessions/{s}/terminal", BOB, {"mode": "drive"})),
    Lie("configuration read again", 403, http("POST", "/v1/reload", BOB)),
    Lie("task that does not exist", 404, http("POST", f"/v1/tasks/{'0' * 16}/take")),
    Lie("task begun that was not taken", 404, http("POST", f"/v1/tasks/{'0' * 16}/begin")),
    Lie("body over all limits", 400, http("POST", "/v1/escalations/{n}", BOB, b"x" * (BODY_LIMIT + 1))),
    Lie("line without end", None, b"GET /" + b"x" * 100_000),
    Lie("headers without end", 400, b"GET / HTTP/1.1\r\n" + b"a: b\r\n" * 10_000),
    Lie("both a length and chunks", 400, http("POST", "/v1/escalations/{n}", BOB, APPROVED,
        "Transfer-Encoding: chunked\r\n")),
    Lie("no HTTP", 400, b"\x16\x03\x01\x00\x05hello\r\n\r\n"),
    Lie("service without a name", None, b"", service="control "),
    Lie("service of a path", None, b"", service="control ../daemon"),
    Lie("service that does not exist", None, b"", service="shell daemon"),
    Lie("process that does not run", None, b"", service="control owner-4242"),
    Lie("first line without end", None, b"", service="control " + "x" * 10_000),
    Lie("terminal of a path", None, b"", service="terminal ../../daemon"),
    Lie("terminal of a session without one", None, b"{}\n", service="terminal 0a-1"),
)  # fmt: skip


class LyingMemberTests(TestCase):
    async def setUp(self) -> None:  # type: ignore[override]
        self.victim = Victim(scratch(self))
        await self.victim.start()
        self.addCleanup(lambda: Deferred.fromCoroutine(self.victim.stop()))
        self.question = self.victim.ask()

    async def test_lies_of_a_member_are_refused(self) -> None:
        self.assertEqual(len({lie.what for lie in LIES}), len(LIES))
        records = self.records()
        for lie in LIES:
            answer = await self.tell(lie)
            statuses = {int(status) for status in re.findall(rb"^HTTP/1.1 ([0-9]+)", answer, re.MULTILINE)}
            self.assertEqual(statuses, set() if lie.status is None else {lie.status}, (lie.what, answer[:300]))
            self.assertNotIn(SECRET.encode(), answer, lie.what)
            self.assertNotIn(b"Traceback", answer, lie.what)
            (waiting,) = self.victim.session.escalations.pending()
            self.assertEqual((waiting.number, waiting.outcome, waiting.approved_by), (self.question.number, None, ()))
        self.assertEqual(self.records(), records)
        self.assertEqual(len(self.victim.operations.sessions(owner())), 1)
        answer = await self.tell(decision("the truth", 200, ADA, "laptop"))
        self.assertIn(b'"by":"local:ada@laptop"', answer)

    async def test_decision_that_came_before_or_too_late_is_refused(self) -> None:
        right = decision("right", 200, BOB)
        self.assertIn(b'"outcome":"approved"', await self.tell(right))
        self.assertIn(b"409 Conflict", await self.tell(right))
        before, self.question = self.question, self.victim.ask()
        old = self.victim.fill(right.said, before).replace(b"/1 HTTP", b"/%d HTTP" % self.question.number)
        self.assertIn(b"other arguments", await self.victim.request("evil", old))
        self.victim.session.escalations.withdraw_all()
        self.assertIn(b"409 Conflict", await self.tell(right))

    async def tell(self, lie: Lie) -> bytes:
        """:returns: what the victim answers."""
        return await self.victim.request(lie.host, self.victim.fill(lie.said, self.question), lie.service)

    def records(self) -> dict[Path, list[bytes]]:
        """:returns: the audit logs, without what is written from time to time whatever happens."""
        lines = {path: path.read_bytes().splitlines() for path in self.victim.home.sessions.glob("*/audit.jsonl")}
        return {path: [line for line in found if b'"checkpoint"' not in line] for path, found in lines.items()}
