"""Show which files to review before continuing in a workspace that an agent changed."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from ironcurtain.cli.output import print_lines
from ironcurtain.text.display import one_line

if TYPE_CHECKING:
    from ironcurtain.home.session_paths import SessionPaths
    from ironcurtain.project.planted import SuspectFile

SHOWN = 20
"""Maximum number of files named; 'ironcurtain diff' shows all changes."""

PATH_LIMIT = 120


def review(findings: Sequence[SuspectFile]) -> None:
    """Print the files on standard error; files that run in builds are summarised."""
    urgent = [finding for finding in findings if not finding.building]
    if urgent:
        print_lines("Review these files before you continue in the workspace:", err=True)
    for finding in urgent[:SHOWN]:
        print_lines(f"  {finding.what:<8} {one_line(finding.path, PATH_LIMIT)}", err=True)
        print_lines(f"           {one_line(finding.reason, 300)}", err=True)
    if len(urgent) > SHOWN:
        print_lines(f"  and {len(urgent) - SHOWN} more: ironcurtain diff", err=True)
    if building := [one_line(finding.path, PATH_LIMIT) for finding in findings if finding.building]:
        more = f" and {len(building) - 5} more" if len(building) > 5 else ""
        print_lines(f"Changed, and run when you build or test: {', '.join(building[:5])}{more}", err=True)


def review_of(paths: SessionPaths) -> None:
    """
    Print the packages that a session fetched, which ended, and the findings in its workspace; nothing of a workspace
    that was not checked.
    """
    import msgspec

    from ironcurtain.session.findings import Findings

    _list_packages(paths)
    try:
        found = msgspec.json.decode(paths.findings.read_bytes(), type=Findings)
    except (OSError, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return
    review(found.files)
    if not found.complete:
        print_lines("Not all files in the workspace could be checked: see 'ironcurtain diff'", err=True)


def _list_packages(paths: SessionPaths) -> None:
    from ironcurtain.audit.chain import read_record

    fetched: dict[str, None] = {}
    with suppress(OSError), paths.audit.open("rb") as lines:
        records = (read_record(line.removesuffix(b"\n")) for line in lines if b'"package"' in line)
        for record in records:
            if record is not None and record.get("kind") == "package":
                fetched[f"{record.get('name')} {record.get('release')} ({record.get('registry')})"] = None
    if fetched:
        named = ", ".join(one_line(each, PATH_LIMIT) for each in list(fetched)[:SHOWN])
        more = f" and {len(fetched) - SHOWN} more: ironcurtain report" if len(fetched) > SHOWN else ""
        print_lines(f"Fetched from package registries: {named}{more}", err=True)
