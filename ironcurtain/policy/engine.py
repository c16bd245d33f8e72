"""
The policy engine: judges tool calls and resource reads.

The order of the checks is fixed. Invariants come first, and no rule can override them: the tool must be known, its
arguments must be valid, protected paths stay protected, the workspace is allowed. Then the rules judge each role of the
arguments. The default is to deny.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from os.path import join, split
from typing import Any
from urllib.parse import quote

import msgspec

from ironcurtain.errors import ConfigurationError
from ironcurtain.policy import desktop, network, remotes, telemetry, unannotated
from ironcurtain.policy.annotations import Annotations, ToolAnnotation
from ironcurtain.policy.arguments import problem
from ironcurtain.policy.files import HOST_FILES, FileView
from ironcurtain.policy.history import NO_HISTORY, CallHistory
from ironcurtain.policy.judgement import WORKSPACE_SERVERS, Judgement, Refusal, Ruling, combined
from ironcurtain.policy.lists import DomainPatterns, expand
from ironcurtain.policy.matching import PreparedRule, prepare
from ironcurtain.policy.pathmap import PathMap, file_path
from ironcurtain.policy.paths import Places, Root, UnresolvablePath
from ironcurtain.policy.plans import Plan, make_plan
from ironcurtain.policy.protected import Protection
from ironcurtain.policy.repository_files import check_files
from ironcurtain.policy.roles import NAMED_ROLES
from ironcurtain.policy.rules import Policy, Rule
from ironcurtain.policy.verdict import Automatic, Decision, Reversal, ToolCall, Trace, Verdict
from ironcurtain.process.accounts import Account

RESOURCE_TOOL = "resources/read"
"""The tool name that rules use for reading an MCP resource."""

SUBSCRIBE_TOOL = "resources/subscribe"
"""The name that records have for a subscription to a resource; rules use :data:`RESOURCE_TOOL` for it, too."""

_INTROSPECTION = ("filesystem", "list_allowed_directories")
_EMPTY_PLAN = Plan((), (), (), {}, {}, (), ())
_NO_URI = re.compile(r"[\x00-\x20\x7f]")


class _Tool(msgspec.Struct):
    """An annotated tool, and a cache of its plans by the roles of its arguments."""

    annotation: ToolAnnotation
    conditional: bool
    roles: Mapping[str, tuple[str, ...]]
    plans: dict[tuple[tuple[str, ...], ...], Plan] = msgspec.field(default_factory=dict)


class ServerBounds(msgspec.Struct, frozen=True, order=True):
    """
    The limits of one server that do not come from the policy.

    :param domains: the hosts in its own network configuration; empty if it has no such list.
    :param reach: the absolute paths that its sandbox contains; any other path is denied. ``None`` if unknown.
    :param account: the account that it runs as; ``None`` for the account of this process.
    :param sandboxed: ``False`` for a server that runs on this machine outside a sandbox. Each of its calls needs
        approval, since the effects of its arguments cannot be known.
    """

    domains: tuple[str, ...] = ()
    reach: tuple[str, ...] | None = None
    account: Account | None = None
    sandboxed: bool = True


class PolicyEngine:
    """
    Judges the calls of one session. The ``evaluate`` methods always return a verdict; they raise only what
    ``files`` raises.

    :param paths: the workspace on the host and as the agent sees it.
    :param home: absolute path of the user's home directory (``~``).
    :param protected: protected paths besides those of the policy; see
        :func:`~ironcurtain.policy.protected.always_protected`.
    :param servers: the limits of each server that the person configured, by name. Calls of their tools without
        annotation are asked; those of any other server are denied.
    :param files: answers about files.
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
        files: FileView = HOST_FILES,
    ) -> None:
        known = annotations.merged(policy.annotations)
        bounds = dict(servers or {})
        self._servers = frozenset(bounds)
        self._unsandboxed = frozenset(name for name, bound in bounds.items() if not bound.sandboxed)
        self._tools = {key: _Tool(tool, tool.conditional, tool.resolve({})) for key, tool in known.table().items()}
        self._places = Places(paths, home, files)
        self.home = self._places.home or "/"
        """The real path of the user's home directory."""
        every, not_links = (*protected, *policy.protected), set[str]()
        self._protection = Protection(
            dict.fromkeys(name for path in every for name in self._both_names(path, policy.source, not_links)),
            self._places.workspace,
        )
        self._reach = {
            name: [Root(self._configured(path, name, "sandbox")) for path in bound.reach]
            for name, bound in bounds.items()
            if bound.reach is not None
        }
        self._accounts = {name: bound.account for name, bound in bounds.items() if bound.account is not None}
        tables = [prepare(rule, None, policy.lists, self._places.workspace) for rule in policy.tables]
        self._rules = (*tables, *(self._prepared(rule, index, policy) for index, rule in enumerate(policy.rules)))
        self._listed = frozenset(
            role for rule in policy.every_rule for condition in rule.conditions.lists for role in condition.roles
        ) | (NAMED_ROLES if any(rule.auto for rule in policy.every_rule) else frozenset())
        self.named = frozenset(policy.annotations.servers).union(
            *(rule.conditions.server or () for rule in policy.rules)
        )
        """The servers that the policy names."""
        self.open_hosts = _open_hosts(policy)
        """The patterns of hosts to which any program may connect without a question."""
        self.remembers = any(rule.conditions.has_memory for rule in policy.every_rule)
        """Whether verdicts depend on what happened before in the session."""
        conditions = (rule.conditions.paths for rule in policy.every_rule)
        self.asks_created = any(each is not None and each.created is not None for each in conditions)
        """Whether verdicts depend on who created a file."""
        self._domains = {name: DomainPatterns(bound.domains) for name, bound in bounds.items() if bound.domains}
        content = [policy.every_rule, policy.lists, known, every, sorted(bounds.items()), telemetry.digest()]
        self.policy_version = hashlib.sha256(msgspec.json.encode(content, order="deterministic")).hexdigest()[:16]
        """16 hexadecimal digits: a hash over everything that verdicts depend on."""

    def _configured(self, path: str, source: str, field: str, not_links: set[str] | None = None) -> str:
        try:
            return self._places.real(path, not_links)
        except UnresolvablePath as e:
            raise ConfigurationError(source, f"{path!r} cannot be resolved: {e}", field=field) from e

    def _both_names(self, path: str, source: str, not_links: set[str]) -> tuple[str, str]:
        """:returns: what a protected path leads to, and the path itself, at which there can be a link or a file."""
        above, name = split(self._places.named(path))
        whole, parent = (self._configured(each, source, "protected", not_links) for each in (path, above))
        return whole, join(parent, name)

    def _prepared(self, rule: Rule, index: int, policy: Policy) -> PreparedRule:
        paths, field = rule.conditions.paths, f"rules[{index}].if.paths.within"
        within = None if paths is None else Root(self._configured(paths.directory, policy.source, field))
        return prepare(rule, within, policy.lists, self._places.workspace)

    def evaluate(
        self,
        call: ToolCall,
        schema: Mapping[str, Any] | None,
        *,
        git_directory: str | None = None,
        files: FileView | None = None,
        history: CallHistory = NO_HISTORY,
        trace: Trace | None = None,
    ) -> Verdict:
        """
        Judge one call.

        :param schema: the tool's input schema, ``None`` if the server has no such tool.
        :param git_directory: the working directory of the session's git server, for calls without a path.
        :param files: answers about files for this call, if not the engine's.
        :param history: what happened before in the session.
        :param trace: if given, records the steps of the evaluation.
        """
        judgement = Judgement(call, _EMPTY_PLAN, self._places, self._protection, files, history, trace)
        try:
            if schema is not None and call.server in self._servers and (call.server, call.tool) not in self._tools:
                self._require_valid(call, schema)
                return self._verdict(judgement, self._ask(judgement, call.arguments, schema))
            tool = self._admit(call, schema)
            roles = tool.annotation.resolve(call.arguments) if tool.conditional else tool.roles
            judgement.note("tool and arguments", "pass")
            judgement.plan = self._plan(tool, call, roles)
            if (
                call.server == "git"
                and "path" in roles
                and "path" in _properties(schema)
                and not _names_repo_path(call)
            ):
                _add_git_directory(judgement, git_directory)
            if call.server == network.SERVER:
                network.prepare(judgement)
            ruling = self._judge(judgement, roles)
            if ruling.decision is not Decision.DENY and (unknown := _unknown(call, tool)):
                ruling = combined(ruling, self._ask(judgement, unknown, schema or {}))
            return self._verdict(judgement, ruling)
        except Refusal as refusal:
            judgement.note(refusal.ruling.rule, "deny", refusal.ruling.reason)
            return judgement.verdict(refusal.ruling)

    def evaluate_resource(
        self,
        server: str,
        uri: str,
        *,
        files: FileView | None = None,
        history: CallHistory = NO_HISTORY,
        trace: Trace | None = None,
    ) -> Verdict:
        """
        Judge a read of, or a subscription to, an MCP resource.

        A ``file:`` URI has the role ``read-path``, an ``http:`` or ``https:`` URI the role ``fetch-url``. Any other
        scheme needs a rule for the server.

        :param files: answers about files for this call, if not the engine's.
        :param history: what happened before in the session.

        :returns: a verdict whose argument ``uri`` is the URI to request from the server.
        """
        scheme = uri.partition(":")[0].lower()
        path = file_path(uri) if scheme == "file" else None
        roles: dict[str, tuple[str, ...]] = {"uri": ("read-path",) if path is not None else ()}
        if scheme in ("http", "https"):
            roles = {"uri": ("fetch-url",)}
        call = ToolCall(server, RESOURCE_TOOL, {"uri": uri if path is None else path})
        plan = make_plan(server, RESOURCE_TOOL, roles, self._rules, self._listed)
        judgement = Judgement(call, plan, self._places, self._protection, files, history, trace)
        try:
            if _NO_URI.search(uri) or (scheme == "file" and path is None):
                raise Refusal("invalid-arguments", "the URI is malformed")
            ruling = self._judge(judgement, roles)
        except Refusal as refusal:
            ruling = refusal.ruling
        if path is not None:
            judgement.arguments["uri"] = f"file://{quote(judgement.arguments['uri'], errors='surrogatepass')}"
        return self._verdict(judgement, ruling)

    def _verdict(self, judgement: Judgement, ruling: Ruling) -> Verdict:
        verdict = judgement.verdict(self._escalate_unsandboxed(judgement, ruling))
        if judgement.call.server not in self._unsandboxed:
            return verdict
        return msgspec.structs.replace(verdict, reversal=Reversal.UNKNOWN)

    def argument_roles(self, call: ToolCall) -> Mapping[str, tuple[str, ...]]:
        """:returns: the roles of each argument in a call; empty if the tool has no annotation."""
        tool = self._tools.get((call.server, call.tool))
        return {} if tool is None else tool.annotation.resolve(call.arguments)

    def names_host(self, call: ToolCall) -> bool:
        """
        :param call: a connection of the server ``network``.
        :returns: whether a rule that does not deny names its host exactly, so that it may have a private address.
        """
        judgement = Judgement(call, _EMPTY_PLAN, self._places, self._protection)
        tool = self._tools[(call.server, call.tool)]
        try:
            judgement.plan = self._plan(tool, call, tool.roles)
            network.prepare(judgement)
        except Refusal:
            return False
        return network.names_exactly(judgement.plan, next(iter(judgement.targets.values())))

    def evaluate_assumed(
        self,
        call: ToolCall,
        *,
        git_directory: str | None = None,
        files: FileView | None = None,
        history: CallHistory = NO_HISTORY,
        trace: Trace | None = None,
    ) -> Verdict:
        """
        Judge a call, or a read of a resource, of a server that does not run: the tool is assumed to exist, with the
        arguments that its annotation names. The parameters are those of :meth:`evaluate`.
        """
        if call.tool in (RESOURCE_TOOL, SUBSCRIBE_TOOL):
            uri = call.arguments.get("uri")
            text = uri if isinstance(uri, str) else ""
            return self.evaluate_resource(call.server, text, files=files, history=history, trace=trace)
        tool = self._tools.get((call.server, call.tool))
        schema: dict[str, Any] = {"additionalProperties": True}
        if tool is not None:
            schema = {"type": "object", "properties": {name: {} for name in tool.annotation.args}}
        return self.evaluate(call, schema, git_directory=git_directory, files=files, history=history, trace=trace)

    def _escalate_unsandboxed(self, judgement: Judgement, ruling: Ruling) -> Ruling:
        if judgement.call.server not in self._unsandboxed or ruling.decision is Decision.DENY:
            return ruling
        name, reason = "structural-unsandboxed", f"the server {judgement.call.server} runs outside any sandbox"
        judgement.note(name, "escalate", reason)
        judgement.asking.append(name)
        judgement.automatic = Automatic.NEVER
        if ruling.decision is Decision.ALLOW:
            return Ruling(Decision.ESCALATE, name, f"{reason}: the effects of this call cannot be known")
        return Ruling(ruling.decision, ruling.rule, f"{ruling.reason}; and {reason}")

    def _admit(self, call: ToolCall, schema: Mapping[str, Any] | None) -> _Tool:
        if schema is None:
            raise Refusal("unknown-tool", f"the server {call.server} has no tool {call.tool}")
        tool = self._tools.get((call.server, call.tool))
        if tool is None:
            raise Refusal("missing-annotation", f"the tool {call.tool} has no annotation")
        self._require_valid(call, schema)
        if call.server not in self._servers and (unknown := _unknown(call, tool)):
            raise Refusal("missing-annotation", f"the argument {next(iter(unknown))} of {call.tool} has no annotation")
        return tool

    def _ask(self, judgement: Judgement, arguments: Mapping[str, Any], schema: Mapping[str, Any]) -> Ruling:
        reach = self._reach.get(judgement.call.server)
        return unannotated.ask(judgement, arguments, self._rules, self._places, schema, reach)

    def _require_valid(self, call: ToolCall, schema: Mapping[str, Any]) -> None:
        if (wrong := problem(call.arguments, schema)) is not None:
            raise Refusal("invalid-arguments", wrong)

    def _plan(self, tool: _Tool, call: ToolCall, roles: Mapping[str, tuple[str, ...]]) -> Plan:
        variant = tuple(roles.values()) if tool.conditional else ()
        plan = tool.plans.get(variant)
        if plan is None:
            plan = tool.plans[variant] = make_plan(call.server, call.tool, roles, self._rules, self._listed)
        return plan

    def _judge(self, judgement: Judgement, roles: Mapping[str, tuple[str, ...]]) -> Ruling:
        call, plan = judgement.call, judgement.plan
        judgement.collect()
        judgement.check_protected()
        if (roots := self._reach.get(call.server)) is not None:
            judgement.check_reach(roots)
        if call.server == "git":
            remotes.check_options(judgement, roles)
            check_files(judgement, roles, self._places)
        if plan.remotes:
            remotes.resolve(judgement, self._places)
        if (call.server, call.tool) == _INTROSPECTION and not call.arguments:
            judgement.note("introspection", "allow")
            return Ruling(Decision.ALLOW, "structural-introspection-allow", "it only lists what the server can access")
        free = judgement.free_in_workspace()
        domains = self._domains.get(call.server)
        if domains is not None and (outside := judgement.outside_server_domains(domains)) is not None:
            return self._check_rights(judgement, outside)
        unmentioned = call.server in self._servers - self.named - WORKSPACE_SERVERS
        ruling = judgement.by_rules(free, asks=unmentioned)
        if call.server == network.SERVER:
            listed = self._domains.get(network.server_of(judgement.arguments))
            ruling = network.decide(judgement, ruling, listed)
        elif call.server == desktop.SERVER:
            ruling = desktop.decide(judgement, ruling)
        return self._check_rights(judgement, ruling)

    def _check_rights(self, judgement: Judgement, ruling: Ruling) -> Ruling:
        server = judgement.call.server
        if ruling.decision is Decision.ESCALATE and (account := self._accounts.get(server)) is not None:
            judgement.check_rights(account, self._reach.get(server, ()))
        return ruling


def _open_hosts(policy: Policy) -> tuple[str, ...]:
    hosts: list[str] = []
    for rule in policy.rules:
        its = rule.conditions
        of_connections = network.SERVER in (its.server or ()) and network.CONNECT in (its.tool or (network.CONNECT,))
        if rule.then == "allow" and of_connections and its.domains and not (its.lists or its.has_memory):
            hosts += expand(its.domains.allowed, policy.lists)
    return tuple(dict.fromkeys(hosts))


def _properties(schema: Mapping[str, Any] | None) -> Mapping[str, Any]:
    """:returns: the properties that a schema declares, empty if it is malformed."""
    found = (schema or {}).get("properties")
    return found if isinstance(found, Mapping) else {}


def _unknown(call: ToolCall, tool: _Tool) -> dict[str, Any]:
    """:returns: the arguments of a call that the tool's annotation does not name, whether its schema does or not."""
    return {name: value for name, value in call.arguments.items() if name not in tool.annotation.args}


def _names_repo_path(call: ToolCall) -> bool:
    """Whether the call has the argument ``repo_path`` of the reference git server, which has no working directory."""
    return isinstance(call.arguments.get("repo_path"), str)


def _add_git_directory(judgement: Judgement, directory: str | None) -> None:
    """Judge a call without a path as if it named the git server's working directory, which that server uses then."""
    written = judgement.arguments.get("path")
    if written is not None and not (isinstance(written, str) and not written.strip()):
        return
    if not directory:
        raise Refusal(
            "git-path-enrichment-failed", "the call has no path, and the git server has no working directory yet"
        )
    judgement.arguments["path"] = directory
    judgement.note("git directory", "pass", directory)
