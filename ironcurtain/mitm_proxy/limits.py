"""How much of everything one session's agent may use of the proxy."""

from __future__ import annotations

from dataclasses import dataclass

MIB = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Limits:
    """
    Times are in seconds.

    :param connections: at a time.
    :param kept_bytes: of request bodies that are held back until they have been inspected, all together.
    :param head_seconds: for the CONNECT request and the TLS handshake together, and for a request's head once begun.
    :param body_seconds: for a request's body.
    :param idle_seconds: a connection may stay open without a request.
    :param silence_seconds: a provider may send nothing while it answers; models think for minutes.
    :param answer_seconds: for one request and its answer together.
    :param connect_seconds: for finding a provider's addresses, and for each attempt to reach one.
    :param linger_seconds: a connection that we close waits for the client to have read what we wrote.
    :param provider_idle_seconds: an unused connection to a provider is kept.
    :param provider_idle: unused connections to one provider.
    """

    connections: int = 64
    kept_bytes: int = 64 * MIB
    head_seconds: float = 15.0
    body_seconds: float = 120.0
    idle_seconds: float = 300.0
    silence_seconds: float = 600.0
    answer_seconds: float = 3600.0
    connect_seconds: float = 10.0
    linger_seconds: float = 2.0
    provider_idle_seconds: float = 30.0
    provider_idle: int = 64
