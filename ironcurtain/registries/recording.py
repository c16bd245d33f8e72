"""What is recorded and told of packages: each request, and each file that was verified and passed on."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple

from ironcurtain.audit.log import AuditLog
from ironcurtain.errors import AuditUnavailable
from ironcurtain.network.refusal_records import RefusalRecords
from ironcurtain.providers.provider import RequestRefusal
from ironcurtain.registries.releases import Digest, Release

NAME_LIMIT = 300
"""Maximum length in characters of names, versions and paths in a record: agents choose them."""


class PackageFetched(NamedTuple):
    """
    A verified file reached the agent.

    :ivar digest: as in ``sha512-BASE64``.
    :ivar verified: whether the registry's metadata have that digest.
    """

    registry: str
    name: str
    version: str
    file: str
    digest: str
    size: int
    verified: bool


class PackageRefused(NamedTuple):
    """
    A request to a registry was refused.

    :ivar rule: a stable code for programs.
    :ivar reason: for people.
    """

    registry: str
    name: str
    version: str
    rule: str
    reason: str


PackageTraffic = PackageFetched | PackageRefused


class RecordedRefusal(RequestRefusal, frozen=True):
    """A refusal that was recorded."""


class PackageRecorder:
    """
    :param registry: the registry's name in the settings.
    :param events: called with each file and each refusal; it must not raise.
    :param seconds: of a monotonic clock.
    """

    def __init__(
        self,
        registry: str,
        audit: AuditLog,
        events: Callable[[PackageTraffic], None],
        seconds: Callable[[], float],
    ) -> None:
        self._registry, self._audit, self._events, self._seconds = registry, audit, events, seconds
        self._refusals = RefusalRecords(self._unrecorded)

    def request(self, name: str, version: str = "", file: str = "") -> None:
        """
        Record a request that is sent to the registry, before it is.

        :param file: empty for metadata.
        :raises AuditUnavailable: it could not be recorded, so it must not be made.
        """
        self._write("package-request", "allow", name, version, file)

    def refuse(self, refusal: RequestRefusal, name: str, version: str = "", file: str = "") -> RecordedRefusal:
        """
        Record the refusal of a request.

        :raises AuditUnavailable: it could not be recorded.
        """
        self.refused(name, version, file, refusal.code, refusal.reason)
        return RecordedRefusal(refusal.status, refusal.code, refusal.reason)

    def refused(self, name: str, version: str, file: str, rule: str, reason: str) -> None:
        """
        Record that something is not passed on, or count it if there are too many of a rule.

        :raises AuditUnavailable: it could not be recorded.
        """
        if self._refusals.admit(rule, self._seconds()):
            self._write("package-request", "deny", name, version, file, rule=rule, reason=reason)
        self._events(PackageRefused(self._registry, name[:NAME_LIMIT], version[:NAME_LIMIT], rule, reason))

    def fetched(self, release: Release, size: int, digest: Digest) -> None:
        """
        Record a file, before its end is passed on.

        :raises AuditUnavailable: it could not be recorded, so it must not be passed on.
        """
        verified = release.digest is not None
        self._audit.append(
            "package",
            registry=self._registry,
            name=release.name[:NAME_LIMIT],
            release=release.version[:NAME_LIMIT],
            file=release.file[:NAME_LIMIT],
            digest=str(digest),
            size=size,
            published="" if release.published is None else release.published.isoformat(),
            verified=verified,
        )
        self._events(
            PackageFetched(self._registry, release.name, release.version, release.file, str(digest), size, verified)
        )

    def end(self) -> None:
        """Record the number of refusals that were only counted."""
        self._refusals.end()

    def _unrecorded(self, rule: str, count: int) -> None:
        with suppress(AuditUnavailable):  # the audit log reports the error itself
            self._audit.append("unrecorded", rule=rule, count=count)

    def _write(self, kind: str, decision: str, name: str, version: str, file: str, **more: str) -> None:
        shown = {"name": name, "release": version, "file": file}
        self._audit.append(
            kind,
            registry=self._registry,
            decision=decision,
            **{member: value[:NAME_LIMIT] for member, value in shown.items() if value},
            **more,
        )
