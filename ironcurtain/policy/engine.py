"""
The policy engine: what may a tool call do?

The order of the checks is fixed. What no rule can change comes first: the tool must be known, its arguments must fit,
protected paths stay protected, the workspace is free. Then each role of the arguments is judged by the rules, and what
no rule allows is denied.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

import msgspec

from ironcurtain.errors import ConfigurationError
from ironcurtain.policy import remotes
from ironcurtain.policy.annotations import Annotations, ToolAnnotation
from ironcurtain.policy.arguments import problem
from ironcurtain.policy.judgement import Judgement, Refusal, Ruling
from ironcurtain.policy.lists import DomainPatterns
from ironcurtain.policy.matching import ReadyRule, ready
from ironcurtain.policy.pathmap import PathMap, file_path
from ironcurtain.policy.paths import Places, Root, UnresolvablePath
from ironcurtain.policy.plans import Plan, make_plan
from ironcurtain.policy.protected import Protection
from ironcurtain.policy.rules import Policy, Rule
from ironcurtain.policy.verdict import Decision, ToolCall, Trace, Verdict
from ironcurtain.process.accounts import Account

RESOURCE_TOOL = "resources/read"
"""The name by which rules know the reading of an MCP resource."""

_INTROSPECTION = ("filesystem", "list_allowed_directories")
_PLANLESS = Plan((), (), (), {}, (), ())
_NO_URI = re.compile(r"[\x00-\x20\x7f]")


@dataclass(slots=True)
class _Tool:
    """An annotated tool, with the plans made so far by the roles of its arguments."""

    annotation: ToolAnnotation
    conditional: bool
    roles: Mapping[str, tuple[str, ...]]
    plans: dict[tuple[tuple[str, ...], ...], Plan] = field(default_factory=dict)


class ServerBounds(msgspec.Struct, frozen=True, order=True):
    """
    By what one server is bound, besides by the policy.

    :param domains: the hosts of its own network configuration; empty: there is no such list.
    :param reach: the absolute paths that it has; a path elsewhere is denied at once. ``None``: not known.
    :param account: as whom it uses what it has, if not as we.
    :param sandboxed: ``False`` for a server that runs on this machine outside any sandbox: a person is asked before
        each of its calls, since what it does with what an agent wrote nobody can tell.
    """

    domains: tuple[str, ...] = ()
    reach: tuple[str, ...] | None = None
    account: Account | None = None
    sandboxed: bool = True


class PolicyEngine:
    """
    Judges the calls of one session. Every question is answered with a verdict; none raises.

    :param paths: the workspace under its two names.
    :param home: absolute path of the user's home, which ``~`` means.
    :param protected: paths besides those of the policy; :func:`~ironcurtain.policy.protected.always_protected`.
    :param servers: by what each server is bound, besides by the policy; absent: by nothing.
    :raises ConfigurationError: a path in the policy cannot be resolved.
    """

    def __init__(
        self,
        policy: Policy,
        annotations: Annotations,
        *,
        paths: PathMap,
        home: str,
        protected: Sequence[str] = (),
        servers: Mapping[str, ServerBounds] | None = None,
    ) -> None:
        known = annotations.merged(policy.annotations)
        bounds = dict(servers or {})
        self._unsandboxed = frozenset(name for name, bound in bounds.items() if not bound.sandboxed)
        self._tools = {key: _Tool(tool, tool.conditional, tool.resolve({})) for key, tool in known.table().items()}
        self._places = Places(paths, home)
        self.home = self._places.home or "/"
        """The real path of the user's home."""
        every = (*protected, *policy.protected)
        self._protection = Protection(
            [self._configured(path, policy.source, "protected") for path in every], self._places.workspace
        )
        self._reach = {
            name: [Root(self._configured(path, name, "sandbox")) for path in bound.reach]
            for name, bound in bounds.items()
            if bound.reach is not None
        }
        self._accounts = {name: bound.account for name, bound in bounds.items() if bound.account is not None}
        self._rules = tuple(self._ready(rule, index, policy) for index, rule in enumerate(policy.rules))
        self._listed = frozenset(
            role for rule in policy.rules for condition in rule.conditions.lists for role in condition.roles
        )
        self._domains = {name: DomainPatterns(bound.domains) for name, bound in bounds.items() if bound.domains}
        content = [policy.rules, policy.lists, known, every, sorted(bounds.items())]
        self.policy_version = hashlib.sha256(msgspec.json.encode(content, order="deterministic")).hexdigest()[:16]
        """16 hexadecimal digits over everything that verdicts follow from."""

    def _configured(self, path: str, source: str, field: str) -> str:
        try:
            return self._places.real(path)
        except UnresolvablePath as e:
            raise ConfigurationError(source, f"{path!r} cannot be resolved: {e}", field=field) from e

    def _ready(self, rule: Rule, index: int, policy: Policy) -> ReadyRule:
        paths, field = rule.conditions.paths, f"rules[{index}].if.paths.within"
        within = None if paths is None else Root(self._configured(paths.within, policy.source, field))
        return ready(rule, within, policy.lists)

    def evaluate(
        self,
        call: ToolCall,
        schema: Mapping[str, Any] | None,
        *,
        git_directory: str | None = None,
        trace: Trace | None = None,
    ) -> Verdict:
        """
        Judge one call.

        :param schema: the tool's input schema, ``None`` if the server has no such tool.
        :param git_directory: where the session's git server works if a call does not say it.
        :param trace: notes how the verdict comes about, if given.
        """
        judgement = Judgement(call, _PLANLESS, self._places, self._protection, trace)
        try:
            tool = self._admit(call, schema)
            roles = tool.annotation.resolve(call.arguments) if tool.conditional else tool.roles
            judgement.note("tool and arguments", "pass")
            judgement.plan = self._plan(tool, call, roles)
            if call.server == "git" and "path" in roles and "path" in _properties(schema) and not _names_other(call):
                _add_git_directory(judgement, git_directory)
            return judgement.verdict(self._asked(judgement, self._judge(judgement, roles)))
        except Refusal as refusal:
            judgement.note(refusal.ruling.rule, "deny", refusal.ruling.reason)
            return judgement.verdict(refusal.ruling)

    def evaluate_resource(self, server: str, uri: str, *, trace: Trace | None = None) -> Verdict:
        """
        Judge the reading of an MCP resource, or a subscription to it.

        ``file:`` is a path that is read, ``http:`` an address that is fetched; any other needs a rule for the server.

        :returns: a verdict whose arguments hold ``uri``, what to ask the server for.
        """
        scheme = uri.partition(":")[0].lower()
        path = file_path(uri) if scheme == "file" else None
        roles: dict[str, tuple[str, ...]] = {"uri": ("read-path",) if path is not None else ()}
        if scheme in ("http", "https"):
            roles = {"uri": ("fetch-url",)}
        call = ToolCall(server, RESOURCE_TOOL, {"uri": uri if path is None else path})
        plan = make_plan(server, RESOURCE_TOOL, roles, self._rules, self._listed)
        judgement = Judgement(call, plan, self._places, self._protection, trace)
        try:
            if _NO_URI.search(uri) or (scheme == "file" and path is None):
                raise Refusal("invalid-arguments", "it is no URI that can be judged")
            ruling = self._judge(judgement, roles)
        except Refusal as refusal:
            ruling = refusal.ruling
        if path is not None:
            judgement.arguments["uri"] = f"file://{quote(judgement.arguments['uri'], errors='surrogatepass')}"
        return judgement.verdict(self._asked(judgement, ruling))

    def _asked(self, judgement: Judgement, ruling: Ruling) -> Ruling:
        if judgement.call.server not in self._unsandboxed or ruling.decision is Decision.DENY:
            return ruling
        name, reason = "structural-unsandboxed", f"the server {judgement.call.server} runs outside any sandbox"
        judgement.note(name, "escalate", reason)
        judgement.asking.append(name)
        if ruling.decision is Decision.ALLOW:
            return Ruling(Decision.ESCALATE, name, f"{reason}: what it does with what the agent wrote, nobody can tell")
        return Ruling(ruling.decision, ruling.rule, f"{ruling.reason}; and {reason}")

    def _admit(self, call: ToolCall, schema: Mapping[str, Any] | None) -> _Tool:
        if schema is None:
            raise Refusal("unknown-tool", f"the server {call.server} has no tool {call.tool}")
        tool = self._tools.get((call.server, call.tool))
        if tool is None:
            raise Refusal("missing-annotation", f"no annotation says what the arguments of {call.tool} mean")
        known = tool.annotation.args
        if (wrong := problem(call.arguments, schema)) is not None:
            raise Refusal("invalid-arguments", wrong)
        unknown = [name for name in call.arguments if name not in known and name in _properties(schema)]
        if unknown:
            raise Refusal("missing-annotation", f"no annotation says what {unknown[0]} of {call.tool} means")
        return tool

    def _plan(self, tool: _Tool, call: ToolCall, roles: Mapping[str, tuple[str, ...]]) -> Plan:
        variant = tuple(roles.values()) if tool.conditional else ()
        plan = tool.plans.get(variant)
        if plan is None:
            plan = tool.plans[variant] = make_plan(call.server, call.tool, roles, self._rules, self._listed)
        return plan

    def _judge(self, judgement: Judgement, roles: Mapping[str, tuple[str, ...]]) -> Ruling:
        call, plan = judgement.call, judgement.plan
        judgement.collect()
        judgement.protect()
        if (roots := self._reach.get(call.server)) is not None:
            judgement.within_reach(roots)
        if call.server == "git":
            remotes.check_options(judgement, roles)
        if plan.remotes:
            remotes.resolve(judgement, self._places)
        if (call.server, call.tool) == _INTROSPECTION and not call.arguments:
            judgement.note("introspection", "allow")
            return Ruling(Decision.ALLOW, "structural-introspection-allow", "it only says what the server may reach")
        free = judgement.free_in_workspace()  # for a server outside any sandbox, a person is asked all the same
        domains = self._domains.get(call.server)
        if domains is not None and (outside := judgement.outside_server_domains(domains)) is not None:
            return self._possible(judgement, outside)
        return self._possible(judgement, judgement.by_rules(free))

    def _possible(self, judgement: Judgement, ruling: Ruling) -> Ruling:
        server = judgement.call.server
        if ruling.decision is Decision.ESCALATE and (account := self._accounts.get(server)) is not None:
            judgement.within_rights(account, self._reach.get(server, ()))
        return ruling


def _properties(schema: Mapping[str, Any] | None) -> Mapping[str, Any]:
    """:returns: what a server's schema declares, nothing if it is malformed."""
    found = (schema or {}).get("properties")
    return found if isinstance(found, Mapping) else {}


def _names_other(call: ToolCall) -> bool:
    """Whether the call names its repository by the argument of the reference git server, which keeps no directory."""
    return isinstance(call.arguments.get("repo_path"), str)


def _add_git_directory(judgement: Judgement, directory: str | None) -> None:
    """A git server that keeps a working directory uses it for calls without a path, so that is what is judged."""
    written = judgement.arguments.get("path")
    if written is not None and not (isinstance(written, str) and not written.strip()):
        return
    if not directory:
        raise Refusal("git-path-enrichment-failed", "no path is given, and the git server has no working directory yet")
    judgement.arguments["path"] = directory
    judgement.note("git directory", "pass", directory)
