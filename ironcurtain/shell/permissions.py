"""What ``[approval.filesystem]`` and ``[approval.network]`` say about the files and hosts of a command."""

from __future__ import annotations

import re
from collections.abc import Iterable

import msgspec
from msgspec.structs import replace

from ironcurtain.command_rules import Places
from ironcurtain.command_rules.globs import paths_cover
from ironcurtain.command_rules.places import Names, is_descriptor, normal, shown
from ironcurtain.commandline import Word
from ironcurtain.http.hosts import Host
from ironcurtain.http.urls import UnclearAddress, bracketed, read_authority
from ironcurtain.policy.lists import DomainPatterns
from ironcurtain.policy.targets import HostileRemote, git_target, web_target
from ironcurtain.policy.verdict import SEVERITY, Decision, Resource
from ironcurtain.shell.approval import Approval


class Opinion(msgspec.Struct, frozen=True):
    """
    What one table or rule says about one part of a command.

    :param rule: its name.
    :param reason: one sentence for people.
    """

    decision: Decision
    rule: str
    reason: str


def decided(decision: Decision, field: str, subject: str) -> Opinion:
    """:returns: what a field of a table says about a subject."""
    if field == "approval.default" and decision is Decision.ESCALATE:
        return Opinion(decision, field, f"no rule of your policy allows {subject}")
    verb = {Decision.ALLOW: "allows", Decision.ESCALATE: "asks about", Decision.DENY: "denies"}[decision]
    return Opinion(decision, field, f"{field} {verb} {subject}")


def most_severe(opinions: Iterable[Opinion]) -> Opinion:
    """:returns: the first of the most severe opinions."""
    return max(opinions, key=lambda opinion: SEVERITY[opinion.decision])


def glob_names(glob: str, home: str, directory: str) -> Names:
    """
    :param glob: of ``[approval.filesystem]``.
    :param directory: what ``$CWD`` stands for.
    :returns: the names of the absolute glob.
    """
    for start, path in (("$CWD", directory), ("$HOME", home), ("~", home)):
        if glob == start or glob.startswith(f"{start}/"):
            return (*normal(path), *normal(glob.removeprefix(start)))
    return normal(glob)


class FilePermissions:
    """
    Judges the files of one command.

    :param directory: the one that the command starts in.
    """

    def __init__(self, approval: Approval, places: Places, home: str, directory: str) -> None:
        table = approval.tables.filesystem
        self._places = places
        self._mode, self._field = approval.mode("filesystem")
        self._write = [glob_names(glob, home, directory) for glob in table.write]
        self._read = [glob_names(glob, home, directory) for glob in table.read]

    def judge(self, word: Word, writes: bool) -> Opinion:
        """
        :param word: a path.
        :param writes: whether the command changes the file, not only reads it.
        """
        listed = self._write if writes else self._read
        action, name = ("writing", "write") if writes else ("reading", "read")
        forms = self._places.forms(word)
        path = shown(min(forms))
        if not word.known or any(map(is_descriptor, forms)):
            decision = Decision.DENY if self._mode is Decision.DENY else Decision.ESCALATE
            return Opinion(decision, "structural-unknown", "the text does not show which files it uses")
        globs = self._write if writes else [*self._read, *self._write]
        if all(any(_covers(glob, form, writes) for glob in globs) for form in forms):
            return Opinion(Decision.ALLOW, f"approval.filesystem.{name}", f"{action} {path} is allowed")
        if self._mode is Decision.ALLOW and listed:
            return Opinion(
                Decision.ESCALATE,
                f"approval.filesystem.{name}",
                f"[approval.filesystem] does not list {path}: {action}",
            )
        return decided(self._mode, self._field, f"{action} {path}")

    def judge_within(self, word: Word) -> Opinion:
        """:param word: a directory in which a command makes or changes files that its text does not name."""
        # Some may be deeper, and some hidden.
        found = most_severe(self.judge(Word(f"{word.pattern}/{below}"), writes=True) for below in ("*/*", ".*"))
        if found.decision is not Decision.ESCALATE or not word.known:
            return found
        path = shown(min(self._places.forms(word)))
        return replace(
            found, reason=f"its text does not name the files that it writes below {path}: hidden ones may be there"
        )


def _covers(glob: Names, path: Names, writes: bool) -> bool:
    """Programs obey hidden files, such as ``.git/config``: a glob lets one be written only if it names it."""
    hidden = {name for name in path if name.startswith(".")} if writes else set()
    return paths_cover(glob, path) and hidden <= set(glob)


class NetworkPermissions:
    """Judges the addresses of one command."""

    def __init__(self, approval: Approval) -> None:
        self._mode, self._field = approval.mode("network")
        self._listed = bool(approval.tables.network.allow_hosts)
        self._patterns = DomainPatterns(approval.tables.network.allow_hosts)

    def judge(self, word: Word) -> Opinion:
        """:param word: an address: a URL, a host, or a file on a host."""
        hosts = hosts_of(word)
        named = word.text if word.known else "an address that the text does not show"
        if hosts and all(self._patterns.match_host(bracketed(host)) for host in hosts):
            return Opinion(Decision.ALLOW, "approval.network.allow_hosts", f"the hosts of {named} are allowed")
        if self._mode is Decision.ALLOW and self._listed:
            rule = "approval.network.allow_hosts"
            return Opinion(Decision.ESCALATE, rule, f"[approval.network] does not list the host of {named}")
        return decided(self._mode, self._field, named)


def hosts_of(word: Word) -> tuple[Host, ...]:
    """:returns: the hosts that an address can mean; none if the text does not show them."""
    if word.plain is None:
        return ()
    text = word.text
    scheme, separator, _ = text.partition("://")
    try:
        if not separator:
            user, at, rest = text.rpartition("@")
            return (read_authority(f"{user}{at}{re.split('[:/?#]', rest, maxsplit=1)[0]}").host,)
        target = web_target(text) if scheme.lower() in ("http", "https") else git_target(text)
    except (HostileRemote, UnclearAddress):
        return ()
    return () if target.host is None else (target.host,)


def file_resources(words: Iterable[Word], role: str, places: Places) -> tuple[Resource, ...]:
    """:returns: files for display."""
    found = (shown(min(places.forms(word))) if word.known else word.text for word in words)
    return tuple(Resource(role, "", value) for value in dict.fromkeys(found))
