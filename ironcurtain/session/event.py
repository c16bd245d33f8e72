"""The base of all events of a session."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar, Self

import msgspec


class Event(msgspec.Struct, frozen=True, tag_field="type", kw_only=True, omit_defaults=True):
    """Base of all events."""

    free_texts: ClassVar[tuple[str, ...]] = ()
    """Members with text of an agent's own, from which live secrets are removed before anybody gets the event."""

    def redacted(self, live: Callable[[str], str]) -> Self:
        """
        :param live: replaces live secrets in a text.
        :returns: the event without live secrets in its free texts.
        """
        if not self.free_texts:
            return self
        return msgspec.structs.replace(self, **{name: live(getattr(self, name)) for name in self.free_texts})
