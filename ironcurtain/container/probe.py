"""Prove that a container is closed, before an agent is started in it."""

from __future__ import annotations

from importlib import resources

from ironcurtain.container import execution
from ironcurtain.container.engine import Engine
from ironcurtain.container.errors import ProbeFailed
from ironcurtain.container.findings import Finding
from ironcurtain.container.inside import judge_inside, parse
from ironcurtain.container.layout import SOCKETS
from ironcurtain.container.outside import judge_description, judge_kernel, judge_sockets
from ironcurtain.container.spec import ContainerSpec
from ironcurtain.container.state import State

OUTPUT_LIMIT = 256 * 1024
"""Most bytes that are kept of what the probe prints (it prints about 6 KiB)."""


async def probe(engine: Engine, container: str, spec: ContainerSpec) -> tuple[Finding, ...]:
    """
    Look at a running container from inside and outside.

    :param container: its full id.
    :returns: what was looked at, all of it as ordered: for the record.
    :raises ProbeFailed: something is not as ordered, or could not be found out.
    :raises ContainerDied: it ended meanwhile.
    """
    inspected = await engine.inspect(container)
    findings = (
        *judge_description(inspected, spec),
        *judge_kernel(container, State.of(inspected).pid),
        judge_sockets(spec),
        *judge_inside(parse(await _look_inside(engine, container)), spec),
    )
    if problems := tuple(finding.problem for finding in findings if finding.problem):
        raise ProbeFailed(problems)
    return findings


async def _look_inside(engine: Engine, container: str) -> str:
    said = bytearray()

    def take(data: bytes) -> None:
        said.extend(data[: OUTPUT_LIMIT - len(said)])

    script = resources.files("ironcurtain.container").joinpath("data/probe.sh").read_text()
    line = ("/bin/sh", "-c", script, "probe", SOCKETS)
    await execution.run(
        engine, container, line, stdin=b"", stdout=take, stderr=lambda _: None, environment={"LC_ALL": "C"}
    )
    return said.decode("utf-8", "replace")
