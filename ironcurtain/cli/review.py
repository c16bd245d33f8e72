"""Show which files to review before continuing in a workspace that an agent changed."""

from __future__ import annotations

from collections.abc import Sequence
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
    """Print the findings of a session that ended; nothing if its workspace was not checked."""
    import msgspec

    from ironcurtain.session.project import Findings

    try:
        found = msgspec.json.decode(paths.findings.read_bytes(), type=Findings)
    except (OSError, msgspec.DecodeError):
        return
    review(found.files)
    if not found.complete:
        print_lines("Not all files in the workspace could be checked: see 'ironcurtain diff'", err=True)
