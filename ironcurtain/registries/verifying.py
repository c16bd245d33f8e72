"""Verify a file while it is passed on: its last part is held back until its digest is known to be right."""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from typing import Final

from ironcurtain.registries.fetching import Unusable
from ironcurtain.registries.releases import Digest

HELD_BACK: Final = 256 * 1024
"""
Minimum size in bytes of what is held back; of most packages that is the whole file. Without its end no archive can be
used.
"""


class WrongDigest(Unusable):
    """A file is not the one that the registry's metadata describe. Its end was not passed on."""


def too_large(limit: int) -> Unusable:
    """:param limit: maximum size in bytes."""
    return Unusable(f"the file is larger than {limit // 1_000_000} MB (max_file_mb in [registries])")


async def verified(
    body: AsyncIterator[bytes], digest: Digest | None, limit: int, complete: Callable[[int, Digest], None]
) -> AsyncGenerator[bytes, None]:
    """
    Pass on a file.

    :param digest: what it must have; ``None``: anything, and it is only computed.
    :param limit: maximum size in bytes.
    :param complete: called with size and digest before the end is passed on; what it raises stops that.
    :raises Unusable: the file is too large, or (:class:`WrongDigest`) another one.
    """
    algorithm = "sha256" if digest is None else digest.algorithm
    computing, held, size, waiting = hashlib.new(algorithm), deque[bytes](), 0, 0
    async for piece in body:
        size += len(piece)
        if size > limit:
            raise too_large(limit)
        computing.update(piece)
        held.append(piece)
        waiting += len(piece)
        while waiting - len(held[0]) >= HELD_BACK:
            waiting -= len(held[0])
            yield held.popleft()
    actual = Digest(algorithm, computing.digest())
    if digest is not None and actual != digest:
        raise WrongDigest(f"the file has the digest {actual}, but the registry's metadata say {digest}")
    complete(size, actual)
    for piece in held:
        yield piece
