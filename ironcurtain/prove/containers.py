"""Run the hostile program in the container of a session."""

from __future__ import annotations

from ironcurtain.container import execution
from ironcurtain.container.engine import Engine
from ironcurtain.container.spec import SESSION_LABEL, WORKSPACE
from ironcurtain.errors import Unavailable
from ironcurtain.prove.outside import Outside
from ironcurtain.prove.report import Report, parse
from ironcurtain.prove.sandboxes import hostile_program


async def prove(subject: str, engine: Engine, session_id: str, outside: Outside) -> Report:
    """
    :param session_id: of a session whose container runs.
    :raises Unavailable: it has no container, or no Python in it.
    """
    found = await engine.list_containers({SESSION_LABEL: session_id})
    if not found:
        raise Unavailable(f"session {session_id} has no container")
    printed: list[bytes] = []
    words = ["python3", "-I", "-c", hostile_program(), outside.targets(WORKSPACE)]
    status = await execution.run(
        engine, found[0]["Id"], words, stdin=b"", stdout=printed.append, stderr=printed.append, environment={}
    )
    if status in (126, 127):
        raise Unavailable("the agent's image has no python3, which runs the hostile program")
    attempts, complete = parse(b"".join(printed))
    return Report(subject, attempts, complete, tuple(outside.seen()))
