"""What a call of a git server would really touch: repositories elsewhere, programs, and the addresses of remotes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from urllib.parse import unquote

from ironcurtain.policy.judgement import Judgement, Refusal, Ruling
from ironcurtain.policy.matching import Value
from ironcurtain.policy.paths import Places, UnresolvablePath, real_path
from ironcurtain.policy.protected import Protection
from ironcurtain.policy.repositories import Repository, TooManyNested, open_repository, with_nested
from ironcurtain.policy.roles import FREE_TEXT_ROLES, REPOSITORY_ROLES
from ironcurtain.policy.targets import HostileRemote, Target, git_target, local_path
from ironcurtain.policy.verdict import Decision

HISTORY_ROLES = ("write-history", "delete-history")
"""What such a tool does makes git look for hooks; so does a push."""


class GitCall:
    """
    A call that works in a repository or with a remote.

    :param home: the user's home, for the user's own git settings.
    """

    __slots__ = ("_home", "_judgement", "_places", "_protection", "_repositories", "_repository", "_value")

    def __init__(self, judgement: Judgement, places: Places, protection: Protection, home: str) -> None:
        self._judgement, self._places, self._protection, self._home = judgement, places, protection, home
        plan = judgement.plan
        named = [value for role in plan.roles if role in REPOSITORY_ROLES for value in judgement.values.get(role, ())]
        values = {value.path: value for value in named if value.argument in plan.repositories}
        self._repositories = [(value, open_repository(path, home)) for path, value in values.items()]
        self._value: Value | None = None
        if self._repositories:
            self._value, self._repository = self._repositories[0]
        else:
            self._repository = open_repository(None, home)

    def _in_workspace(self, value: Value | None) -> bool:
        return value is not None and self._places.workspace.holds(value.path)

    def check(self, roles: Mapping[str, Sequence[str]]) -> None:
        """
        Refuse what no git call may do, and add what it would work on besides the directory that it names.

        :param roles: the roles of every argument of the tool.
        :raises Refusal: an argument that git would read as an option, or a repository whose settings run programs.
        """
        if self._judgement.call.server != "git":
            return
        for name, value in self._judgement.arguments.items():
            items = value if isinstance(value, list) else [value]
            dashed = any(isinstance(item, str) and item.startswith("-") for item in items)
            if dashed and FREE_TEXT_ROLES.isdisjoint(roles.get(name, ())):
                raise Refusal("structural-option-injection", f"{name} begins with a dash, like an option")
        for value, repository in self._repositories:
            if self._in_workspace(value):
                self._check_repository(value, repository)

    def _check_repository(self, value: Value, repository: Repository) -> None:
        """The agent can write what is in the workspace, so what is there must lead to nothing else."""
        try:
            for each in with_nested(repository, self._home):
                if programs := each.programs():
                    reason = f"the repository's own settings may run programs on this machine: {', '.join(programs)}"
                    raise Refusal("structural-git-config", reason)
        except TooManyNested as e:
            raise Refusal("structural-git-config", str(e)) from None
        for path in (*repository.git_directories, *repository.others):
            if not self._places.workspace.holds(path):
                self._judgement.note("repository", "pass", f"git would work in {path}, which is judged too")
                self._add_directory(value.argument, path)

    def _add_directory(self, argument: str, path: str) -> None:
        for role in self._judgement.plan.path_roles:
            values = self._judgement.values.get(role, [])
            if role in REPOSITORY_ROLES and any(held.argument == argument for held in values):
                values.append(Value(argument, path, path, implied=True))

    def resolve_remotes(self) -> None:
        """
        Find where the remotes that the call names lead.

        :raises Refusal: one would run a program, be read as an option, or is a protected directory.
        """
        for value in self._judgement.values.get("git-remote-url", ()):
            if value.text:
                value.targets = self._targets(value.text)

    def add_default_remote(self) -> None:
        """
        If the call names no remote, judge the one that git would use.

        :raises Refusal: as in :meth:`resolve_remotes`.
        """
        judgement = self._judgement
        values = [value for value in judgement.values.pop("git-remote-url", ()) if value.text]
        for name in judgement.plan.remotes:
            missing = judgement.arguments.get(name) in (None, "")
            if missing and self._in_workspace(self._value) and judgement.call.server == "git":
                targets = self._targets(None)
                judgement.note("default remote", "pass", ", ".join(target.text for target in targets) or "none")
                values += [Value(name, targets[0].text, targets=targets)] if targets else []
        if values:
            judgement.values["git-remote-url"] = values

    def _targets(self, remote: str | None) -> tuple[Target, ...]:
        addresses, doubts = self._repository.destinations(remote, self._judgement.call.tool)
        if not addresses and remote is None:
            return ()
        targets = map(self._target, addresses)
        return (*targets, *(Target(f"an address that is not known, since {doubt}") for doubt in doubts))

    def _target(self, address: str) -> Target:
        try:
            target = git_target(address)
        except HostileRemote as e:
            raise Refusal("structural-git-remote", f"the remote {address!r} is not passed on: {e}") from None
        path = local_path(address)
        if path is not None and (root := self._protection.covering(self._local(path))) is not None:
            raise Refusal("structural-protected-path", f"the remote {address!r} lies in {root}, which is protected")
        return target

    def _local(self, path: str) -> str:
        try:
            return real_path(unquote(path), "" if path.startswith("/") or self._value is None else self._value.path)
        except UnresolvablePath:
            return ""

    def with_hooks(self, ruling: Ruling) -> Ruling:
        """
        :returns: the ruling, but a person is asked first if git would run hooks that lie in the workspace, or fetch
            on its own what is missing; one who is asked anyway is told of that too.
        """
        if ruling.decision is Decision.DENY or self._judgement.call.server != "git":
            return ruling
        own = [found for value, found in self._repositories if self._in_workspace(value)]
        if lazy := [name for found in own for name in found.own.lazy()]:
            reason = f"git would fetch from another machine whatever is missing: {', '.join(lazy)}"
            self._judgement.note("partial clone", "escalate", reason)
            return self._asked(ruling, "structural-git-fetches", reason)
        tool_roles = self._judgement.plan.roles
        runs_hooks = bool(self._judgement.plan.remotes) or any(role in tool_roles for role in HISTORY_ROLES)
        hooks = [hook for found in own for hook in found.hooks()] if runs_hooks else []
        if not hooks:
            return ruling
        reason = f"the repository has hooks, which would run on this machine: {', '.join(hooks)}"
        self._judgement.note("hooks", "escalate", reason)
        return self._asked(ruling, "structural-git-hooks", reason)

    def _asked(self, ruling: Ruling, rule: str, reason: str) -> Ruling:
        self._judgement.asking.append(rule)
        if ruling.decision is Decision.ALLOW:
            return Ruling(Decision.ESCALATE, rule, reason)
        return Ruling(ruling.decision, ruling.rule, f"{ruling.reason}; and {reason}")
