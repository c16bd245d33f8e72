"""Why bubblewrap cannot make a sandbox on this machine, and what helps: from its message and the kernel's settings."""

from __future__ import annotations

import os
import re
import shlex
from pathlib import Path

_SETTINGS = Path("/proc/sys")

_CAPABILITIES = {"CAP_SETFCAP": 31, "CAP_SYS_ADMIN": 21}
"""Numbers of capabilities (capabilities(7)): root needs one for mapping accounts, the other for namespaces."""


def explain(message: str, program: str, settings: Path = _SETTINGS, status: str = "/proc/self/status") -> str:
    """
    :param message: bubblewrap's last words.
    :param program: its absolute path.
    :param settings: the directory of the kernel's settings.
    :returns: the likely cause and a command that helps, as sentences; empty if nothing is known.
    """
    if "nknown option" in message:
        return "It is too old: install bubblewrap 0.5 or newer."
    if _value(settings / "kernel/apparmor_restrict_unprivileged_userns") == "1" and _is_refused(message):
        return _apparmor(program, "AppArmor keeps programs from user namespaces unless a profile allows them")
    if _value(settings / "kernel/unprivileged_userns_clone") == "0" and os.geteuid():
        return (
            "This kernel lets only root make user namespaces. Allow them: "
            "sudo sysctl -w kernel.unprivileged_userns_clone=1"
        )
    if _value(settings / "user/max_user_namespaces") == "0":
        return "User namespaces are switched off. Allow them: sudo sysctl -w user.max_user_namespaces=15000"
    if "setting up uid map: Permission denied" in message or "RTM_NEWADDR" in message:
        return _apparmor(program, "The cause is probably AppArmor, which keeps programs from user namespaces")
    if "new namespace" in message and "No permission" in message:
        return (
            "A filter of system calls forbids namespaces, as in most containers: start the container with "
            "--security-opt seccomp=unconfined, or with a profile that allows unshare, clone and mount."
        )
    if missing := [name for name, number in _CAPABILITIES.items() if os.geteuid() == 0 and not _has(number, status)]:
        added = " ".join(f"--cap-add {name.removeprefix('CAP_')}" for name in missing)
        lacking = " and ".join(missing)
        return f"Root lacks {lacking} here, as in most containers. Start the container so: docker run {added}"
    return ""


def _apparmor(program: str, cause: str) -> str:
    name = re.sub(r"[^a-z0-9]+", "-", program.lower()).strip("-")
    quoted = f'"{program}"'
    rules = f"profile {name} {quoted} flags=(unconfined) {{\\n  userns,\\n}}\\n"
    profile = f"abi <abi/4.0>,\\ninclude <tunables/global>\\n{rules}"
    return (
        f"{cause}. Allow it for this program: printf {shlex.quote(profile)} | sudo tee /etc/apparmor.d/{name} && "
        f"sudo apparmor_parser -r /etc/apparmor.d/{name}; or for all programs: "
        "sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0"
    )


def _is_refused(message: str) -> bool:
    return any(word in message for word in ("Permission denied", "not permitted", "No permission", "RTM_NEWADDR"))


def _value(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""


def _has(capability: int, status: str) -> bool:
    try:
        with open(status, encoding="utf-8") as file:
            lines = dict(line.split(":", 1) for line in file if ":" in line)
    except OSError:
        return True
    return bool(int(lines.get("CapEff", "0"), 16) >> capability & 1)
