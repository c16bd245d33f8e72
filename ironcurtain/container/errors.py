"""What goes wrong with containers, one class for each way to react."""

from __future__ import annotations

from ironcurtain.errors import IronCurtainError, Unavailable


class EngineUnavailable(Unavailable):
    """
    No Docker Engine answers, or it went away in the middle of a call. Nothing was made, as far as we know.

    :param address: of the socket that was tried.
    """

    code = "ENGINE_UNAVAILABLE"

    def __init__(self, address: str, why: str) -> None:
        super().__init__(f"no Docker Engine answers at {address} ({why}); to find out more: ironcurtain doctor")
        self.address, self.why = address, why


class EngineError(IronCurtainError):
    """
    The Docker Engine refused a call.

    :param status: of its HTTP answer: 404 no such thing, 409 conflict with the state it is in, 500 its own failure.
    :param message: in the Engine's words.
    """

    code = "ENGINE_ERROR"

    def __init__(self, status: int, message: str) -> None:
        super().__init__(f"the Docker Engine says: {message} (status {status})")
        self.status, self.message = status, message


class ContainerDied(IronCurtainError):
    """The container ended while it was needed. The message says why; what it worked on is still there."""

    code = "CONTAINER_DIED"


class NotReady(IronCurtainError):
    """
    The agent's program could not be started in time, and nothing is left of its container.

    :param words: what was said last in the container, as :func:`~ironcurtain.container.container.last_words` gives it.
    """

    code = "NOT_READY"

    def __init__(self, seconds: float, words: str) -> None:
        super().__init__(f"the container was not ready to be attached to within {seconds:g} s{words}")


class ProbeFailed(IronCurtainError):
    """
    The container is not as closed as it was ordered to be. No agent may start in it.

    :param problems: one sentence each.
    """

    code = "PROBE_FAILED"

    def __init__(self, problems: tuple[str, ...]) -> None:
        super().__init__("the container is not closed, so no agent was started: " + "; ".join(problems))
        self.problems = problems
