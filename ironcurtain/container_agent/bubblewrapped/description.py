"""The sandbox of bubblewrap for a session's agent: what its programs see, and how its first program is started."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from glob import glob
from pathlib import Path

from ironcurtain.agents.adapter import HOME, ORIENTATION
from ironcurtain.container.spec import OPEN_FILES, SOCKETS, WORKSPACE, Mount
from ironcurtain.container_agent.bubblewrapped import first_program, relay
from ironcurtain.container_agent.bubblewrapped.programs import Needed
from ironcurtain.container_agent.bubblewrapped.sandbox import Plan
from ironcurtain.errors import UsageError
from ironcurtain.home.sections import Resources
from ironcurtain.process.accounts import Account
from ironcurtain.sandbox.bubblewrap_options import HOSTNAME
from ironcurtain.sandbox.installation import Installation
from ironcurtain.sandbox.spec import MEBIBYTE, Bound, Kind, Listener, Sandbox, SandboxLimits

PROXY = Listener("127.0.0.1", 18080)
"""Where agents find the MITM proxy: see :data:`ironcurtain.agents.adapter.PROXY_URL`."""

FIRST_PROGRAM, RELAY, PROXY_SOCKET = (f"{SOCKETS}/{name}" for name in ("first.py", "mcp.py", "proxy.sock"))

HOSTS = f"127.0.0.1 localhost\n::1 localhost\n127.0.1.1 {HOSTNAME}\n".encode()

SETTINGS = ("os-release", "debian_version", "mime.types", "python3*", "java-*", "perl", "fonts", "terminfo")
"""Further harmless files of ``/etc`` that languages and their tools read."""

INSTALLED = "/var/lib/dpkg/status"
"""What is installed below ``/usr``, from which ``apt-get`` knows what a package needs besides."""


def interpreter() -> str:
    """:returns: this Python, without the environment that it is called by."""
    return os.path.realpath(sys.executable)


def mcp_command() -> tuple[str, ...]:
    """:returns: the command that connects an agent to the MCP proxy."""
    return (interpreter(), "-I", "-S", RELAY, PROXY_SOCKET)


def plan(
    *,
    name: str,
    account: Account,
    environment: Mapping[str, str],
    needed: Needed,
    mounts: Sequence[Mount],
    proxy_socket: Path,
    resources: Resources,
    temporary_mb: int,
    directory: str = WORKSPACE,
) -> Plan:
    """
    :param environment: environment of all programs inside.
    :param needed: what the agent's program needs.
    :param mounts: what a container would have mounted, besides the sockets.
    :param proxy_socket: the MCP proxy's socket.
    :param temporary_mb: size of each directory in memory in MiB.
    :param directory: path of the workspace inside.
    :raises UsageError: the agent's program is where the sandbox has something else.
    """
    python = interpreter()
    own = Installation(("/nonexistent",), os.defpath, "/nonexistent").of(python, (), "/usr")
    patterns = (*(f"/etc/{pattern}" for pattern in SETTINGS), INSTALLED)
    settings = tuple(path for pattern in patterns for path in sorted(glob(pattern)))
    read = tuple(dict.fromkeys((*needed.paths, *own, *settings)))
    for path in read:
        if any(f"{path}/".startswith(f"{place}/") for place in (HOME, ORIENTATION, SOCKETS, WORKSPACE)):
            raise UsageError(
                f"the agent's program needs {path}, where its sandbox has something else: install it in another "
                "place, or use --sandbox container"
            )
    sandbox = Sandbox(
        read=read,
        listeners=(PROXY,),
        cwd=directory,
        account=account.switched,
        bound=(
            *(Bound(mount.source, mount.target, not mount.read_only) for mount in mounts),
            Bound(str(proxy_socket), PROXY_SOCKET),
            *(Bound(source, target) for source, target in needed.moved),
        ),
        files=(
            ("/etc/hosts", HOSTS),
            (FIRST_PROGRAM, Path(first_program.__file__).read_bytes()),
            (RELAY, Path(relay.__file__).read_bytes()),
        ),
        limits=SandboxLimits(
            memory=resources.memory_mb * MEBIBYTE,
            processes=resources.pids,
            files=OPEN_FILES,
            temporary=temporary_mb * MEBIBYTE,
            data=False,
        ),
        kind=Kind.BUBBLEWRAP,
    )
    variables = {**environment, **needed.variables, "PATH": needed.search, "TMPDIR": "/tmp"}
    return Plan(name, sandbox, (python, "-I", "-S", FIRST_PROGRAM), variables, directory)
