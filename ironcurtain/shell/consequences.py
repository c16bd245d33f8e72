"""What a command changes and reaches, by names that people read."""

from __future__ import annotations

from ironcurtain.policy.verdict import Verdict

ROLES = ("write-path", "fetch-url")
"""The roles of what a command changes, and of addresses that it uses."""


def changed_places(verdict: Verdict) -> tuple[str, ...]:
    """
    :param verdict: on a command.
    :returns: files that it changes and addresses that it uses, as far as its text shows them; those in its directory
        relative to that.
    """
    directory = str(verdict.arguments.get("directory", ""))
    values = (each.value for each in verdict.resources if each.role in ROLES)
    return tuple(dict.fromkeys(_relative(value, directory) for value in values if not value.startswith("/dev/null")))


def _relative(path: str, directory: str) -> str:
    if directory in ("", "/"):
        return path
    if path == directory:
        return "."
    return path.removeprefix(f"{directory}/")
