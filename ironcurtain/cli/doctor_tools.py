"""What ``ironcurtain doctor`` says of the tools of MCP servers."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator
from typing import TYPE_CHECKING

from ironcurtain.cli.findings import HINT, OK, Finding
from ironcurtain.text.display import one_line
from ironcurtain.text.quantities import counted

if TYPE_CHECKING:
    from ironcurtain.home.layout import Home


def tools(where: Home) -> Iterator[Finding]:
    """Check the pinned definitions: which wait, and how calls of the others are judged."""
    from ironcurtain.mcp_proxy.pins import PinFiles

    files, found, (configured, undescribed, judged) = PinFiles(where.tool_definitions, time.time), 0, _judging(where)
    for server in files.servers():
        pins = files.of(server).read()
        found += len(pins)
        usable = [name for name, pin in pins.items() if pin.definition is not None]
        if server in configured and usable:
            yield judged(server, usable)
        held = {name: pin for name, pin in sorted(pins.items()) if pin.waiting is not None}
        for is_new, why in ((True, "contain invisible text"), (False, "changed")):
            if names := [one_line(name, 64) for name, pin in held.items() if (pin.definition is None) is is_new]:
                listed = ", ".join(names[:5]) + (", ..." if len(names) > 5 else "")
                mend = f"View the new definitions before you accept them: ironcurtain tools show {server}"
                yield Finding(f"tools of {server}", HINT, f"withheld, as their definitions {why}: {listed}", mend)
    for server in sorted(undescribed - set(files.servers())):
        mend = f"Start it once, to see how they are judged: ironcurtain mcp test {server}"
        yield Finding(f"tools of {server}", HINT, "not known before its first start", mend)
    yield Finding("tools", OK, f"{counted(found, 'definition')} pinned")


def _judging(where: Home) -> tuple[frozenset[str], frozenset[str], Callable[[str, Collection[str]], Finding]]:
    """:returns: the configured servers, those without annotations, and what says how the tools of one are judged."""
    from ironcurtain.policy.coverage import coverage
    from ironcurtain.policy.loading import default_annotations
    from ironcurtain.session.tool_files import ToolFiles

    files = ToolFiles.chosen(where, {})
    policy = files.load_policy()
    known = default_annotations().merged(policy.annotations)

    def judged(server: str, tools: Collection[str]) -> Finding:
        found = coverage(server, tools, known, policy)
        mend = f"Describe the others: ironcurtain mcp annotate {server}" if found.annotated < found.tools else ""
        return Finding(f"tools of {server}", HINT if mend else OK, str(found), mend)

    names = files.server_names()
    return names, names - known.servers.keys(), judged
