"""
Judge and record every connection and request of a session's programs, as calls of the server ``network``.

Programs open many equal connections, and may try any number of hosts. So equal questions that are asked at the same
time are one, the answer to a question holds for a while, equal calls with the same answer are recorded as one with
their number, and questions and records of refusals are limited per minute.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping
from math import inf
from secrets import randbelow
from typing import Any, Final, NamedTuple

import msgspec
from msgspec.structs import replace
from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger
from twisted.python.failure import Failure

from ironcurtain.errors import AuditUnavailable
from ironcurtain.escalation import arguments_digest
from ironcurtain.http.urls import UnclearAddress, read_web_address
from ironcurtain.mcp_proxy.admission import CallAdmission
from ironcurtain.mcp_proxy.catalogue import ToolDefinition
from ironcurtain.mcp_proxy.memory import CallMemory
from ironcurtain.mcp_proxy.names import public_name
from ironcurtain.mcp_proxy.network_words import ONCE_SECONDS, approval_words, party_of, refusal, reported_place, subject
from ironcurtain.mcp_proxy.pins import digest
from ironcurtain.mcp_proxy.refusals import BREAKER_RULE, CallRefused, refuse_denied
from ironcurtain.mcp_proxy.standing_answers import SharedQuestion, Standing, rules_of
from ironcurtain.network.held import HeldConnections
from ironcurtain.network.judge import AccountUse, NetworkJudge
from ironcurtain.network.refusal_records import WINDOW, Meter, RefusalRecords
from ironcurtain.policy.engine import PolicyEngine
from ironcurtain.policy.network import ACCOUNT_RULE, CONNECT, NO_RULE, REQUEST, SCHEMAS, SERVER, TELEMETRY_RULE
from ironcurtain.policy.verdict import Decision, ToolCall, Verdict
from ironcurtain.providers.provider import RequestRefusal

RECORD_SECONDS: Final = 60.0
"""Seconds in which equal calls with the same answer are recorded once, with their number."""

UNANSWERED_SECONDS: Final = 60.0
"""Seconds after which a call is asked again that nobody answered."""

QUESTIONS = 10
"""Maximum number of different questions of one party within :data:`~ironcurtain.network.refusal_records.WINDOW`."""

REMEMBERED: Final = 1000
"""Maximum number of different calls whose answers are remembered, and of connections that were allowed."""

NUMBERS: Final = 10**12
"""From how many numbers that of a request is taken."""

STOPPED_RULE: Final = "protected-path-appeared"

CONFIGURED_RULE: Final = "configured-network"
"""Allows a connection of a server to a host that its settings list, if no rule is about it."""

NO_OFFERS: Final[Mapping[tuple[str, int], str]] = {}

_Place = tuple[Any, ...]
"""Party, host and port of a connection."""

Listed = Callable[[str, int], bool]
"""Returns whether a person has listed a host and port for a party; rules of the policy can still deny them."""

DEFINITIONS = {
    tool: ToolDefinition(SERVER, tool, public_name(SERVER, tool), {"name": tool, "inputSchema": schema}, digest(schema))
    for tool, schema in SCHEMAS.items()
}
"""The tools of the server. Agents do not see them: the proxies make the calls."""


class RefusedConnection(NamedTuple):
    """
    A connection or a request was refused.

    :param host: text of the agent, as are method and path.
    :param method: ``CONNECT`` for a connection.
    :param path: of the URL; ``host:port`` of a connection.
    :param rule: and ``reason``: why.
    """

    host: str
    method: str
    path: str
    rule: str
    reason: str


class NetworkGate:
    """
    Decides for all parties of one session.

    :param memory: what happened in the session.
    :param durable: whether every call waits until its record is on disk, not only calls that a person approved.
    :param stopped: returns why nothing may leave any more; empty if it may.
    :param refused: called with each refusal, but not those of telemetry.
    """

    log = Logger()

    def __init__(
        self,
        *,
        engine: PolicyEngine,
        admission: CallAdmission,
        memory: CallMemory,
        clock: IReactorTime,
        durable: bool = False,
        stopped: Callable[[], str] = lambda: "",
        refused: Callable[[RefusedConnection], None] = lambda refused: None,
    ) -> None:
        self._engine, self._admission, self._memory, self._clock = engine, admission, memory, clock
        self._durable, self._stopped, self._refused = durable, stopped, refused
        self._standings: OrderedDict[str, Standing] = OrderedDict()
        self._asking: dict[str, SharedQuestion] = {}
        self._connected: OrderedDict[_Place, float] = OrderedDict()
        """Until when a connection is allowed, in seconds of the clock."""
        self._listed: dict[str, Listed] = {}
        self._offers: dict[tuple[str, str, int], str] = {}
        self._questions: dict[str, Meter] = {}
        self.held = HeldConnections()
        """The open connections whose bytes are not judged."""
        self._records = RefusalRecords(admission.unrecorded)

    def judge(
        self, party: str, listed: Listed | None = None, offers: Mapping[tuple[str, int], str] = NO_OFFERS
    ) -> NetworkJudge:
        """
        :param party: who wants the connections, in words for people: "the agent", "server NAME", "shell".
        :param listed: see :data:`Listed`.
        :param offers: what an approval opens in place of a host and port, in words.
        :returns: what decides for it.
        """
        self._offers.update({(party, host, port): words for (host, port), words in offers.items()})
        if listed is not None:
            self._listed[party] = listed
        return _PartyJudge(self, party)

    async def connect(self, party: str, host: str, port: int) -> RequestRefusal | None:
        """See :meth:`~ironcurtain.network.judge.NetworkJudge.connect`."""
        return await self._answer(CONNECT, {"host": host, "port": port, "party": party})

    async def request(
        self, party: str, method: str, url: str, account: AccountUse | None = None
    ) -> RequestRefusal | None:
        """
        See :meth:`~ironcurtain.network.judge.NetworkJudge.request`. Its connection is judged before, if that was not
        done, or if the answer does not hold any more: one that stays open would outlive it.
        """
        try:
            address = read_web_address(url)
        except UnclearAddress:
            pass  # which is denied
        else:
            host, port = address.host.name, address.port
            if self._connected.get((party, host, port), -inf) <= self._clock.seconds():
                answer = await self.connect(party, host, port)
                if answer is not None:
                    return answer
        arguments: dict[str, Any] = {"method": method, "url": url, "party": party}
        if account is not None:
            # One that writes does so each time that it is sent: so none is equal to another.
            arguments |= {} if account.body is None else {"body": account.body}
            arguments |= {"account": account.name, "number": randbelow(NUMBERS)}
        return await self._answer(REQUEST, arguments, account is not None and account.listed)

    def may_be_private(self, host: str, port: int) -> bool:
        """See :meth:`~ironcurtain.network.judge.NetworkJudge.may_be_private`."""
        return self._engine.names_host(ToolCall(SERVER, CONNECT, {"host": host, "port": port}))

    def forget_approvals(self) -> None:
        """
        Ask again about everything that a person has allowed, unless it is covered by a kept approval. Requests over
        connections that are open wait for the answer, too; those whose bytes are not judged are ended.
        """
        self._connected.clear()
        for standing in self._standings.values():
            if standing.decision is Decision.ESCALATE and standing.answer is None:
                standing.until = -inf
        self.held.recheck(self._allows)

    def _allows(self, party: str, host: str, port: int) -> bool:
        verdict = self._judged(CONNECT, {"host": host, "port": port, "party": party})
        return verdict.decision is Decision.ALLOW

    def close(self) -> None:
        """Withdraw all questions, and record how often calls were repeated."""
        for question in list(self._asking.values()):
            question.end()
        while self._standings:
            self._drop(self._standings.popitem(last=False)[1])
        self._records.end()

    async def _answer(self, tool: str, arguments: dict[str, Any], listed: bool = False) -> RequestRefusal | None:
        verdict = self._judged(tool, arguments)
        if listed and verdict.rule == ACCOUNT_RULE:
            why = f"the settings allow reading it with the {arguments['account']} token"
            verdict = replace(verdict, decision=Decision.ALLOW, rule=CONFIGURED_RULE, reason=why, asking=())
        key = _key(tool, verdict)
        if (standing := self._repeated(key, verdict)) is not None:
            answer = standing.answer
        elif verdict.decision is Decision.ESCALATE:
            answer = await self._ask_once(key, tool, verdict)
        else:
            answer = await self._decide(key, tool, verdict)
        if tool == CONNECT:
            self._remember(key, verdict, answer)
        if answer is None:
            self._memory.made(SERVER, tool)
        elif verdict.rule != TELEMETRY_RULE:
            self._refused(RefusedConnection(*reported_place(tool, verdict), verdict.rule, answer.reason))
        return answer

    def _remember(self, key: str, verdict: Verdict, answer: RequestRefusal | None) -> None:
        """Remember whether, and how long, requests may use a connection. A person's answer holds for a while only."""
        place: _Place = tuple(verdict.arguments.get(name) for name in ("party", "host", "port"))
        self._connected.pop(place, None)
        if answer is not None:
            return
        asked = verdict.decision is Decision.ESCALATE
        self._connected[place] = self._standings[key].until if asked and key in self._standings else inf
        while len(self._connected) > REMEMBERED:
            self._connected.popitem(last=False)

    def _repeated(self, key: str, verdict: Verdict) -> Standing | None:
        """:returns: the answer that an equal call got, if it still holds; the call is counted then."""
        standing = self._standings.get(key)
        if standing is None or not standing.fits(verdict, self._clock.seconds()):
            return None
        standing.repeats += 1
        return standing

    def _judged(self, tool: str, arguments: dict[str, Any]) -> Verdict:
        if why := self._stopped():
            return Verdict(Decision.DENY, STOPPED_RULE, why, arguments)
        try:
            call = ToolCall(SERVER, tool, arguments)
            verdict = self._engine.evaluate(call, SCHEMAS[tool], history=self._memory.now())
            return self._permitted(verdict) if verdict.rule in NO_RULE else verdict
        except Exception:
            self.log.failure("the policy could not judge a call to {server} {tool}", server=SERVER, tool=tool)
            return Verdict(Decision.DENY, "invalid-arguments", "the policy cannot judge it", arguments)

    def _permitted(self, verdict: Verdict) -> Verdict:
        """:returns: the verdict on a connection that no rule is about, if the person has listed it for this party."""
        host, port, party = (verdict.arguments[name] for name in ("host", "port", "party"))
        listed = self._listed.get(party)
        if listed is None or not listed(host, port):
            return verdict
        why = f"the settings of {party} list {host}:{port}"
        return replace(verdict, decision=Decision.ALLOW, rule=CONFIGURED_RULE, reason=why, asking=())

    async def _decide(self, key: str, tool: str, verdict: Verdict) -> RequestRefusal | None:
        """Record a call that is allowed or denied without a question."""
        now, call = self._clock.seconds(), self._admission.open(SERVER, tool)
        if verdict.decision is Decision.DENY and not self._records.admit(party_of(verdict), now):
            return refusal(*subject(tool, verdict), verdict, "denied-by-rule")
        answer = None
        try:
            sequence = self._admission.record(call, verdict)
            refuse_denied(verdict)
            if self._durable:
                await self._admission.durable(sequence)
            self._admission.close(call, "success")
        except CallRefused as e:
            self._admission.close(call, e.status, error=e.why)
            answer = refusal(*subject(tool, verdict), verdict, e.why)
        except AuditUnavailable:
            return _unrecorded()
        except CancelledError:
            self._admission.close(call, "cancelled")
            raise
        until = inf if verdict.rule == TELEMETRY_RULE else now + RECORD_SECONDS
        self._keep(key, Standing(call, verdict.decision, rules_of(verdict), answer, until))
        return answer

    async def _ask_once(self, key: str, tool: str, verdict: Verdict) -> RequestRefusal | None:
        if (question := self._asking.get(key)) is not None:
            return await question.wait()
        asked = self._questions.setdefault(party_of(verdict), Meter(QUESTIONS, WINDOW))
        if not asked.take(self._clock.seconds()):
            return await self._break(tool, verdict)
        work = Deferred.fromCoroutine(self._ask(key, tool, verdict))
        if work.called:
            return await work
        question = self._asking[key] = SharedQuestion(work, self._clock)

        def over(answer: RequestRefusal | Failure | None) -> None:
            del self._asking[key]
            question.finish(answer)

        work.addBoth(over)
        return await question.wait()

    async def _break(self, tool: str, verdict: Verdict) -> RequestRefusal:
        party = verdict.arguments.get("party")
        why = f"{party} wanted more than {QUESTIONS} different approvals within {WINDOW:.0f} s"
        denied = replace(verdict, decision=Decision.DENY, rule=BREAKER_RULE, reason=why)
        key = arguments_digest(SERVER, tool, {"party": party})
        if self._repeated(key, denied) is None:
            await self._decide(key, tool, denied)
        return refusal(*subject(tool, verdict), denied, BREAKER_RULE)

    async def _ask(self, key: str, tool: str, verdict: Verdict) -> RequestRefusal | None:
        call, hold = self._admission.open(SERVER, tool), ONCE_SECONDS
        answer: RequestRefusal | None = None
        try:
            self._admission.record(call, verdict)
            words = approval_words(tool, self._offer(tool, verdict), once=verdict.rule == ACCOUNT_RULE)
            shown = replace(verdict, reason=f"{verdict.reason}; {words}")
            await self._admission.ask(call, shown, None, DEFINITIONS[tool])
            if self._judged(tool, dict(verdict.arguments)).decision is Decision.DENY:
                raise CallRefused("denied", "changed-meanwhile", "", verdict.rule)
            self._admission.close(call, "success")
        except CallRefused as e:
            self._admission.close(call, e.status, error=e.why)
            if e.status == "withdrawn" or e.why == "changed-meanwhile":
                hold = 0.0
            elif e.why != "denied-by-person":
                hold = UNANSWERED_SECONDS
            answer = refusal(*subject(tool, verdict), verdict, e.why, self._offer(tool, verdict))
        except AuditUnavailable:
            return _unrecorded()
        except BaseException as e:
            self._admission.close(call, "cancelled" if isinstance(e, CancelledError) else "failed")
            raise
        until = self._clock.seconds() + hold
        self._keep(key, Standing(call, verdict.decision, rules_of(verdict), answer, until))
        return answer

    def _offer(self, tool: str, verdict: Verdict) -> str:
        if tool != CONNECT:
            return ""
        party, host, port = (verdict.arguments[name] for name in ("party", "host", "port"))
        return self._offers.get((party, host, port), "")

    def _keep(self, key: str, standing: Standing) -> None:
        if (before := self._standings.pop(key, None)) is not None:
            self._drop(before)
        self._standings[key] = standing
        while len(self._standings) > REMEMBERED:
            self._drop(self._standings.popitem(last=False)[1])

    def _drop(self, standing: Standing) -> None:
        if standing.repeats:
            self._admission.repeated(standing.call, standing.repeats, standing.answer is None)


class _PartyJudge(msgspec.Struct, frozen=True):
    """Decides for one party; see :class:`~ironcurtain.network.judge.NetworkJudge`."""

    _gate: NetworkGate
    _party: str

    async def connect(self, host: str, port: int) -> RequestRefusal | None:
        return await self._gate.connect(self._party, host, port)

    async def request(self, method: str, url: str, account: AccountUse | None = None) -> RequestRefusal | None:
        return await self._gate.request(self._party, method, url, account)

    def may_be_private(self, host: str, port: int) -> bool:
        return self._gate.may_be_private(host, port)

    def hold(self, host: str, port: int, end: Callable[[], None]) -> Callable[[], None]:
        return self._gate.held.add(self._party, host, port, end)


def _key(tool: str, verdict: Verdict) -> str:
    """:returns: what equal calls have in common. Requests are equal by method and server, unless they are asked."""
    arguments = verdict.arguments
    if tool == REQUEST and verdict.decision is not Decision.ESCALATE:
        try:
            origin = read_web_address(str(arguments.get("url"))).origin
        except UnclearAddress:
            origin = ""
        arguments = {name: value for name, value in arguments.items() if name != "number"} | {"url": origin}
    return arguments_digest(SERVER, tool, arguments)


def _unrecorded() -> RequestRefusal:
    return RequestRefusal(503, "audit-unavailable", "the audit log cannot be written: nothing leaves any more")
