"""What may be installed from a registry: by lists of names, and by the age of each version."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

import msgspec

from ironcurtain.home.registry_sections import RegistrySettings, age_seconds
from ironcurtain.providers.provider import RequestRefusal
from ironcurtain.registries.releases import Release
from ironcurtain.text.display import one_line

NAME_SHOWN = 214
"""Maximum length of a name or version in a message, in characters: the longest name that npm allows."""

Normalise = Callable[[str], str]
"""Returns the form of a package's name that is equal for all its spellings."""


class PackagePattern(NamedTuple):
    """
    :ivar text: as the settings have it.
    :ivar regex: matches names, normalised.
    """

    text: str
    regex: re.Pattern[str]


class PackagePolicy(msgspec.Struct, frozen=True):
    """
    :param registry: the registry's name in the settings.
    :param min_age: how old a version must be; zero: any age, and any time, is accepted.
    :param age_text: ``min_age`` as the settings have it.
    :param allow: the only packages that can be installed; empty: all.
    """

    registry: str
    min_age: timedelta
    age_text: str
    allow: tuple[PackagePattern, ...] = ()
    deny: tuple[PackagePattern, ...] = ()

    def refuse_name(self, name: str) -> RequestRefusal | None:
        """
        :param name: normalised.
        :returns: why a package must not be asked for; ``None`` if it may.
        """
        shown = one_line(name, NAME_SHOWN)
        for pattern in self.deny:
            if pattern.regex.fullmatch(name):
                why = f"the package {shown} is denied by {pattern.text} in registries.{self.registry}.deny"
                return RequestRefusal(403, "package-denied", f"{why}: do without it, or ask the user.")
        if self.allow and not any(pattern.regex.fullmatch(name) for pattern in self.allow):
            why = f"the package {shown} is not in registries.{self.registry}.allow"
            return RequestRefusal(403, "package-not-allowed", f"{why}: do without it, or ask the user to add it.")
        return None

    def is_young(self, published: datetime | None, now: datetime) -> bool:
        """:returns: whether a version is too young, or nobody knows when it was published."""
        return bool(self.min_age) and (published is None or now - published < self.min_age)

    def explain_age(self, published: datetime | None) -> str:
        """:returns: why a version is too young, as in ``published 2026-11-25, min_age 7d``."""
        when = "published at an unknown time" if published is None else f"published {published:%Y-%m-%d}"
        return f"{when}, min_age {self.age_text}"

    def refuse_release(self, release: Release, now: datetime) -> RequestRefusal | None:
        """:returns: why a file must not be fetched, by name or by age; ``None`` if it may, or belongs to no package."""
        if not release.name:
            return None
        if refusal := self.refuse_name(release.name):
            return refusal
        if not self.is_young(release.published, now):
            return None
        what = f"{one_line(release.name, NAME_SHOWN)} {one_line(release.version, NAME_SHOWN)} is too young"
        advice = f"choose an older version, or ask the user to change registries.{self.registry}.min_age."
        return RequestRefusal(403, "package-too-young", f"{what} ({self.explain_age(release.published)}): {advice}")

    def refuse_all(self, releases: Sequence[Release], now: datetime) -> RequestRefusal | None:
        """:returns: why none of a package's files may be fetched; ``None`` if one may, or there are none."""
        if not releases or not all(self.is_young(release.published, now) for release in releases):
            return None
        return self.refuse_release(min(releases, key=lambda release: release.published or now), now)


def package_policy(registry: str, settings: RegistrySettings, normalise: Normalise) -> PackagePolicy:
    """
    :param settings: of this registry, as :meth:`~ironcurtain.home.registry_sections.Registries.opened` returns them.
    :param normalise: applied to the names in the lists, whose ``*`` it must leave alone.
    """
    return PackagePolicy(
        registry,
        timedelta(seconds=age_seconds(settings.min_age)),
        settings.min_age,
        _patterns(settings.allow, normalise),
        _patterns(settings.deny, normalise),
    )


def _patterns(texts: Sequence[str], normalise: Normalise) -> tuple[PackagePattern, ...]:
    return tuple(
        PackagePattern(text, re.compile(".*".join(map(re.escape, normalise(text).split("*"))), re.DOTALL))
        for text in texts
    )
