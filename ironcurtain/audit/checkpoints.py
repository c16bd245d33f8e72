"""When heads of the audit log are signed: after a number of records or seconds, and at once after some kinds."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from twisted.internet.interfaces import IReactorTime

from ironcurtain.audit import chain

if TYPE_CHECKING:
    from ironcurtain.audit.signing import SignedHead, SigningKey

SIGNED_RECORDS = 64
"""Maximum number of records after the last signature (signing takes about 0.1 ms)."""

SIGN_SECONDS = 10.0
"""Maximum age in seconds of a record without a signature."""


class Checkpoints:
    """
    :param key: signs; ``None``: nothing is signed.
    :param session: named in each signed head.
    :param late: called when records have waited for :data:`SIGN_SECONDS`.
    :param told: called with each signed head, once it is written.
    """

    def __init__(
        self,
        key: SigningKey | None,
        session: str,
        clock: IReactorTime,
        late: Callable[[], None],
        told: Callable[[SignedHead], None],
    ) -> None:
        self._key, self._session, self._clock, self._late, self._told = key, session, clock, late, told
        self._covered = 0
        self._timer: Any = None
        self.newest: SignedHead | None = None
        """The newest head that was signed here."""

    @property
    def version(self) -> int:
        """The format version of a log that begins now."""
        return chain.UNSIGNED_VERSION if self._key is None else chain.FORMAT_VERSION

    def resume(self, sequence: int) -> None:
        """Count records from this number on."""
        self._covered = sequence

    def sign(self, sequence: int, head: Callable[[], str], time: str, at_once: bool) -> SignedHead | None:
        """
        :param head: returns the digest up to the record of this number.
        :param at_once: whether a signature is made in any case.
        :returns: a new signed head if one is due.
        """
        if self._key is None or not (at_once or sequence - self._covered >= SIGNED_RECORDS):
            return None
        return self._key.sign(self._session, sequence, head(), time)

    def written(self, sequence: int, signed: SignedHead | None) -> None:
        """
        Records up to this number were written.

        :param signed: the signed head that is the last of them, if it is one.
        """
        if signed is not None:
            self._covered, self.newest = sequence, signed
            self.cancel()
            self._told(signed)
        elif self._key is not None and self._timer is None:
            self._timer = self._clock.callLater(SIGN_SECONDS, self._due)

    def cancel(self) -> None:
        """Stop the timer."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _due(self) -> None:
        self._timer = None
        self._late()
