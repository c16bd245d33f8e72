"""The evaluation of one call: its values, the invariants, and the rules."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

import msgspec

from ironcurtain.http.urls import UnclearAddress
from ironcurtain.policy.files import FileView
from ironcurtain.policy.history import NO_HISTORY, CallHistory
from ironcurtain.policy.lists import DomainPatterns
from ironcurtain.policy.matching import Created, PreparedRule, Value
from ironcurtain.policy.paths import ForeignHome, NoPath, Places, Root, UnresolvablePath
from ironcurtain.policy.plans import ArgumentPlan, Plan
from ironcurtain.policy.protected import Protection
from ironcurtain.policy.rights import inaccessible_path
from ironcurtain.policy.roles import HAND_ROLES, LOCAL_ROLES, PATH_ROLES, SENSE_ROLES, URL_ROLES, WRITING_ROLES
from ironcurtain.policy.targets import Target, web_target
from ironcurtain.policy.verdict import SEVERITY, Automatic, Decision, Resource, Reversal, ToolCall, Trace, Verdict
from ironcurtain.process.accounts import Account

WORKSPACE_SERVERS = frozenset(("filesystem", "git", "git-remote"))
"""The servers that may use the workspace without a rule."""

NO_RULE = "structural-no-rule"
"""The check that asks about a call of a server that the person configured and that the policy does not name."""

VALUES_LIMIT = 10_000
"""Maximum number of values of one argument. Judging that many takes about 0.1 seconds; calls rarely name a hundred."""


class Ruling(msgspec.Struct, frozen=True):
    """
    The decision of one check or one rule.

    :param default: whether no rule is about the call.
    """

    decision: Decision
    rule: str
    reason: str
    default: bool = False


_ALL_FREE = Ruling(Decision.ALLOW, "structural-sandbox-allow", "everything is in the workspace")


class Refusal(Exception):
    """A check denies the whole call."""

    def __init__(self, rule: str, reason: str) -> None:
        super().__init__(reason)
        self.ruling = Ruling(Decision.DENY, rule, reason)


def denied_by_default(what: str) -> Ruling:
    """:returns: the ruling if no rule matches."""
    return Ruling(Decision.DENY, "default-deny", f"no rule allows {what}", default=True)


def combined(first: Ruling | None, second: Ruling) -> Ruling:
    """:returns: the more severe of two rulings, with the reasons of both if both escalate."""
    if first is None or SEVERITY[second.decision] > SEVERITY[first.decision]:
        return second
    why = f"{second.rule}: {second.reason}"
    asks = first.decision is second.decision is Decision.ESCALATE
    if not asks or second.rule == first.rule or why in first.reason:
        return first
    return Ruling(first.decision, first.rule, f"{first.reason}; {why}")


class Judgement:
    """
    The state of one evaluation.

    :param plan: what to judge.
    :param files: answers about files, if not those of ``places``.
    :param history: what happened before in the session.
    :param trace: if given, records each step.
    """

    __slots__ = (
        "_not_links",
        "_places",
        "_protection",
        "approvals",
        "arguments",
        "asking",
        "automatic",
        "call",
        "files",
        "guessed",
        "history",
        "plan",
        "targets",
        "trace",
        "values",
    )

    def __init__(
        self,
        call: ToolCall,
        plan: Plan,
        places: Places,
        protection: Protection,
        files: FileView | None = None,
        history: CallHistory = NO_HISTORY,
        trace: Trace | None = None,
    ) -> None:
        self.call, self.plan, self.trace = call, plan, trace
        self.files, self.history = files or places.files, history
        self._places, self._protection = places, protection
        self._not_links: set[str] = set()
        self.arguments: dict[str, Any] = dict(call.arguments)
        self.values: dict[str, list[Value]] = {}
        self.targets: dict[str, Target] = {}
        """Where arguments lead, by name, as far as that is known before they are collected."""
        self.guessed: list[Resource] = []
        """What an argument without annotation seems to name."""
        self.asking: list[str] = []
        self.approvals = 1
        self.automatic = Automatic.ALWAYS

    def verdict(self, ruling: Ruling) -> Verdict:
        """:returns: the verdict for a ruling, with all values that were judged."""
        resources = list(self.guessed)
        for role, values in self.values.items():
            for value in values:
                if role in PATH_ROLES:
                    linked = ruling.decision is Decision.ESCALATE and self._is_linked(value)
                    resources.append(Resource(role, value.argument, value.path, value.written if linked else ""))
                else:
                    texts = [target.text for target in value.targets] or [value.text]
                    resources += [Resource(role, value.argument, text) for text in texts]
        return Verdict(
            ruling.decision,
            ruling.rule,
            ruling.reason,
            self.arguments,
            tuple(resources),
            tuple(dict.fromkeys(self.asking)),
            self._reversal(),
            self.approvals,
            self.automatic if self.asking else Automatic.NEVER,
        )

    def _reversal(self) -> Reversal:
        if self.plan.every - LOCAL_ROLES:
            return Reversal.REMOTE
        if not self.plan.path_roles and self.plan.every & (SENSE_ROLES | HAND_ROLES):
            return Reversal.READS if self.plan.every & SENSE_ROLES else Reversal.DESKTOP
        writing = [role for role in self.plan.path_roles if role in WRITING_ROLES]
        if not all(self.values.get(role) for role in writing or self.plan.path_roles or ("",)):
            return Reversal.UNKNOWN
        holds = self._places.workspace.holds
        within = all(holds(value.path) for role in writing for value in self.values[role])
        return Reversal.READS if not writing else Reversal.SNAPSHOT if within else Reversal.OUTSIDE

    def note(self, check: str, outcome: str, detail: str = "", role: str = "") -> None:
        """Record one step, if there is a trace."""
        if self.trace is not None:
            self.trace.add(check, outcome, detail, role=role)

    def collect(self) -> None:
        """
        Collect the values of each role, and replace paths with their real paths.

        :raises Refusal: a resource is not text, or a path cannot be resolved.
        """
        for argument in self.plan.arguments:
            written = self.arguments.get(argument.name)
            if written is None:
                continue
            items = written if isinstance(written, list) else (written,)
            if len(items) > VALUES_LIMIT:
                raise Refusal("invalid-arguments", f"{argument.name} has more than {VALUES_LIMIT} values")
            values = [self._value(argument, item) for item in items]
            if argument.forwards_path:
                real = [value.path for value in values]
                self.arguments[argument.name] = real if isinstance(written, list) else real[0]
            for role in argument.roles:
                self.values.setdefault(role, []).extend(values)

    def _is_linked(self, value: Value) -> bool:
        return bool(value.written) and self._places.named(value.written) != value.path

    def _value(self, argument: ArgumentPlan, item: Any) -> Value:
        if not isinstance(item, str):
            if argument.is_resource:
                raise Refusal("invalid-arguments", f"{argument.name} must be a string, or a list of strings")
            return Value(argument.name, repr(item), readable=False)
        if argument.is_path:
            real = self._real_path(argument.name, item)
            whole = "delete-path" in argument.roles
            return Value(argument.name, real if argument.forwards_path else item, real, item, whole=whole)
        if (target := self.targets.get(argument.name)) is not None:
            return Value(argument.name, target.text, targets=(target,))
        if argument.is_url and not argument.is_remote:
            return Value(argument.name, item, targets=(self._web_target(argument.name, item),))
        return Value(argument.name, item)

    def _web_target(self, name: str, written: str) -> Target:
        try:
            return web_target(written)
        except UnclearAddress as e:
            raise Refusal("default-deny", f"the address in {name} is ambiguous: {e}") from None

    def _real_path(self, name: str, written: str) -> str:
        try:
            return self._places.real(written, self._not_links, self.files)
        except NoPath as e:
            raise Refusal("invalid-arguments", f"{name} is not a path: {e}") from None
        except ForeignHome as e:
            raise Refusal("default-deny", f"{name} is ambiguous: {e}") from None
        except UnresolvablePath as e:
            raise Refusal("structural-unresolvable-path", f"{name} cannot be resolved: {e}") from None

    def check_protected(self) -> None:
        """:raises Refusal: a path is protected, or is a directory to delete or create that contains such a path."""
        for role in self.plan.path_roles:
            for value in self.values.get(role, ()):
                root = self._protection.covering(value.path, self.files)
                if root is None and (below := self._protection.inside(value.path)) is not None:
                    made = role == "write-path" and not self.files.exists(value.path)
                    root = below if made or role == "delete-path" else None
                if root is not None:
                    self._refuse_protected(value.path, root, role)
        self.note("protected paths", "pass")

    def refuse_protected(self, path: str) -> None:
        """:raises Refusal: a real path is protected."""
        if (root := self._protection.covering(path, self.files)) is not None:
            self._refuse_protected(path, root)

    def _refuse_protected(self, path: str, root: str, role: str = "") -> NoReturn:
        self.note("protected paths", "deny", f"{path} belongs to {root}", role)
        raise Refusal("structural-protected-path", f"{path} is protected, and no rule can allow it")

    def check_reach(self, roots: Sequence[Root]) -> None:
        """
        :param roots: everything that the server can reach.
        :raises Refusal: a path is elsewhere, so that the call would fail even if it were approved.
        """
        for role in self.plan.path_roles:
            for value in self.values.get(role, ()):
                if not any(root.holds(value.path) for root in roots):
                    reach = ", ".join(root.path for root in roots)
                    self.note("reach of the server", "deny", f"{value.path} is not in {reach}", role)
                    reason = f"the server {self.call.server} cannot reach {value.path}: it can only reach {reach}"
                    raise Refusal("structural-out-of-reach", reason)

    def check_rights(self, account: Account, roots: Sequence[Root]) -> None:
        """
        :param account: the account that the server runs as.
        :param roots: everything that the server can reach.
        :raises Refusal: the account has no permission for a path, so that the call would fail even if it were approved.
        """
        for role in self.plan.path_roles:
            for value in self.values.get(role, ()):
                around = next((root.path for root in roots if root.holds(value.path)), "/")
                if closed := inaccessible_path(account, around, value.path, role):
                    self.note("rights of the account", "deny", f"{account} has no permission for {closed}", role)
                    reason = f"{account}, which the server {self.call.server} runs as, has no permission for {closed}"
                    raise Refusal("structural-out-of-reach", reason)

    def free_in_workspace(self) -> Sequence[str]:
        """:returns: the path roles whose values are all in the workspace, if the server may use it without a rule."""
        if self.call.server not in WORKSPACE_SERVERS:
            return ()
        holds = self._places.workspace.holds
        free: list[str] = []
        for role in self.plan.path_roles:
            values = self.values.get(role)
            if not values:
                continue
            for value in values:
                if not holds(value.path):
                    break
            else:
                free.append(role)
                self.note("workspace", "allow", "every path of the role is in the workspace", role)
        return free

    def outside_server_domains(self, allowed: DomainPatterns) -> Ruling | None:
        """:returns: an escalation if an address is not in the server's own network configuration."""
        for role in self.plan.roles:
            for value in self.values.get(role, ()) if role in URL_ROLES else ():
                if not all(map(allowed.match, value.targets)):
                    reason = f"{value.text} is not in the domain list of the server {self.call.server}"
                    self.note("domains of the server", "escalate", reason, role)
                    self._require_approvals_of_rules()
                    return Ruling(Decision.ESCALATE, "structural-domain-escalate", reason)
        self.note("domains of the server", "pass")
        return None

    def _require_approvals_of_rules(self) -> None:
        """Take the most approvals that any rule could require, so that an address outside a list needs no fewer."""
        for role, rules in self.plan.rules.items():
            for rule in rules:
                if not rule.fails(self.values, role, self.values.get(role, ()), self.history):
                    self.approvals = max(self.approvals, rule.rule.approvals)

    def by_rules(self, free: Sequence[str], *, asks: bool = False) -> Ruling:
        """
        Judge each role separately. The most severe decision wins, and of equals the first. If several rules escalate,
        the reason names all of them, so that the person who decides sees every effect of the call.

        :param free: the roles that need no rule.
        :param asks: whether a role about which there is no rule is asked, not denied.
        """
        result: Ruling | None = None
        for role in self.plan.roles or ("",):
            ruling = self._limited(role, self.values[role]) if role in free else self._judge(role)
            if ruling is None:
                continue
            if ruling.default and asks:
                ruling = self._no_rule()
            if ruling.decision is Decision.DENY:
                return ruling
            result = combined(result, ruling)
        return result or _ALL_FREE

    def _no_rule(self) -> Ruling:
        self.asking.append(NO_RULE)
        self.automatic = Automatic.NEVER
        return Ruling(Decision.ESCALATE, NO_RULE, f"the policy says nothing about the server {self.call.server}")

    def _judge(self, role: str) -> Ruling:
        values = self.values.get(role)
        return self._discharge(role, values) if values else self._first_match(role)

    def _first_match(self, role: str) -> Ruling:
        """Judge a role that has no values: the first rule without a condition on values wins."""
        for rule in self.plan.rules[role]:
            why_not = "there is no path" if rule.within is not None else rule.fails(self.values, role, (), self.history)
            self._note_rule(rule, role, why_not)
            if not why_not:
                return self._ruling(rule)
        return denied_by_default(f"{self.call.server} {self.call.tool}")

    def _discharge(self, role: str, values: Sequence[Value]) -> Ruling:
        """Judge a role's values: every value needs a rule, and a rule takes those that no earlier rule has taken."""
        left, limited = values, None
        if role in PATH_ROLES and self.call.server == "filesystem":
            holds = self._places.workspace.holds
            left = [value for value in values if not holds(value.path)]
            limited = self._limited(role, [value for value in values if holds(value.path)])
        left, result = self._take(role, left, self.plan.rules[role])
        if left or result is None:
            ruling = denied_by_default(f"{role} {left[0].text if left else ''}".rstrip())
            # What a rule denies stays denied where a person is asked about values that no rule is about.
            denies = result is not None and result.decision is Decision.DENY
            return msgspec.structs.replace(ruling, default=not denies)
        return combined(limited, result)

    def _limited(self, role: str, values: Sequence[Value]) -> Ruling | None:
        """Judge values that need no rule by the rules that apply to them all the same."""
        return self._take(role, values, self.plan.limits.get(role, ()))[1]

    def _take(
        self, role: str, values: Sequence[Value], rules: Sequence[PreparedRule]
    ) -> tuple[Sequence[Value], Ruling | None]:
        """:returns: the values that no rule took, and the most severe ruling about the others."""
        left, created = values, self._created(role)
        result: Ruling | None = None
        for rule in rules:
            if not left:
                break
            why_not = rule.fails(self.values, role, left, self.history)
            rest = [] if why_not else [value for value in left if not rule.takes(value, role, created, self.files)]
            if not why_not and len(rest) == len(left):
                why_not = "none of the remaining values meets its conditions"
            self._note_rule(rule, role, why_not)
            if why_not:
                continue
            left, result = rest, combined(result, self._ruling(rule))
        return left, result

    def _created(self, role: str) -> Created:
        def created(path: str) -> bool | None:
            if path in self.history.created or (role == "write-path" and not self.files.exists(path)):
                return True
            return False if self.history.is_complete else None

        return created

    def _note_rule(self, rule: PreparedRule, role: str, why_not: str) -> None:
        if self.trace is not None:
            detail = why_not or rule.facts(self.history)
            self.trace.add(rule.name, "no" if why_not else rule.decision, detail, role=role, rule=True)

    def _ruling(self, rule: PreparedRule) -> Ruling:
        if rule.decision is Decision.ESCALATE:
            self.asking.append(rule.name)
            self.approvals = max(self.approvals, rule.rule.approvals)
            self.automatic = min(self.automatic, rule.rule.automatic)
        return Ruling(rule.decision, rule.name, rule.reason)
