"""Errors of containers, one class for each way to react."""

from __future__ import annotations

from ironcurtain.errors import IronCurtainError, Unavailable


class EngineUnavailable(Unavailable):
    """
    No Docker Engine answers, or it went away during a call. As far as is known, nothing was created.

    :param address: address of its socket.
    """

    code = "ENGINE_UNAVAILABLE"

    def __init__(self, address: str, why: str) -> None:
        super().__init__(f"no Docker Engine answers at {address} ({why}); to find out more: ironcurtain doctor")
        self.address, self.why = address, why


class EngineError(IronCurtainError):
    """
    The Docker Engine refused a call.

    :param status: its HTTP status: 404 no such object, 409 conflict with the current state, 500 internal error.
    :param message: in the Engine's words.
    """

    code = "ENGINE_ERROR"

    def __init__(self, status: int, message: str) -> None:
        super().__init__(f"the Docker Engine says: {message} (status {status})")
        self.status, self.message = status, message


class ContainerDied(IronCurtainError):
    """The container ended while it was needed. The message says why. The workspace still exists."""

    code = "CONTAINER_DIED"


class NotReady(IronCurtainError):
    """
    The agent's program could not be started in time, and its container was removed.

    :param words: the last output in the container, from :func:`~ironcurtain.container.container.last_words`.
    """

    code = "NOT_READY"

    def __init__(self, seconds: float, words: str) -> None:
        super().__init__(f"the container was not ready for attaching within {seconds:g} s{words}")


class ProbeFailed(IronCurtainError):
    """
    The container is not confined as specified. No agent may start in it.

    :param problems: one sentence each.
    :param hint: says what to do, in a sentence.
    """

    code = "PROBE_FAILED"

    def __init__(self, problems: tuple[str, ...], hint: str = "") -> None:
        after = f". {hint}" if hint else ""
        super().__init__(f"the container is not confined, so no agent was started: {'; '.join(problems)}{after}")
        self.problems = problems


class NetworkClosed(IronCurtainError):
    """The network of a container cannot be entered from outside. The message says why."""

    code = "NETWORK_CLOSED"


class SocketsUnreachable(IronCurtainError):
    """A program in the container cannot connect to the sockets of this machine that are mounted in it."""

    code = "SOCKETS_UNREACHABLE"

    def __init__(self) -> None:
        super().__init__(
            "a program in the container cannot connect to sockets of this machine, so no agent was started: set "
            'sockets = "auto" or "tcp" in the table [agents] of config.toml'
        )


class SidecarFailed(Unavailable):
    """The sidecar, through which a container reaches the proxies, cannot reach this machine."""

    code = "SIDECAR_FAILED"

    def __init__(self, why: str) -> None:
        super().__init__(f"the sidecar, through which the container reaches IronCurtain, does not work: {why}")
