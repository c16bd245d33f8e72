"""
Implement a :class:`~ironcurtain.sandbox.spec.Sandbox` as a container of the Docker Engine, if bubblewrap is
unavailable.

The container has the host's ``/usr`` and the sandbox's paths, each mounted from the host. A proxy process represents
the program: it forwards standard streams and exit status, and the container ends with it.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import msgspec

from ironcurtain.platform.kernel import lacking
from ironcurtain.process.own_programs import unreached
from ironcurtain.process.search_path import host_program, required_program
from ironcurtain.sandbox.container_calls import profile
from ironcurtain.sandbox.spec import Access, Sandbox
from ironcurtain.sandbox.system_paths import SETTINGS, SYSTEM

USUAL_SOCKET = "/var/run/docker.sock"

PROBE_SECONDS = 5
"""Time limit in seconds for the Engine's answer (usually milliseconds)."""

CANNOT_START = 125
"""Exit status of the proxy process if the Engine refuses the container (as with ``docker run``)."""

IMAGE = "ironcurtain/sandbox"
"""Name of the image, which has only the mount points; its tag is a digest of these."""

LIMITS = {"MemoryLimit": "memory", "PidsLimit": "processes"}
"""What an Engine says of itself if the kernel does not limit these, in which case it leaves the limit out."""

_DIRECTORIES = ("dev", "etc", "proc", "sys", "tmp")


def engine(environ: Mapping[str, str]) -> str:
    """:returns: the address of the Engine, a UNIX socket unless ``DOCKER_HOST`` names another."""
    return environ.get("DOCKER_HOST") or f"unix://{USUAL_SOCKET}"


class Order(msgspec.Struct, frozen=True):
    """
    The order for the proxy process, as JSON on a descriptor: the sandbox's own files may contain secrets.

    :param engine: address of the Engine.
    """

    sandbox: Sandbox
    engine: str


ORDER_DESCRIPTOR = 3
"""Descriptor from which the proxy process reads its order."""


@cache
def available() -> str | None:
    """
    Find out whether the Engine can create sandboxes, by asking it once per process.

    :returns: ``None`` if it can, else the reason in words.
    """
    if (problem := lacking("running this machine's programs in containers")) is not None:
        return problem
    address = engine(os.environ)
    if not address.startswith("unix:///"):
        return f"the Docker Engine at {address} is not reached by a UNIX socket"
    if not os.access(address.removeprefix("unix://"), os.R_OK | os.W_OK):
        return f"there is no Docker Engine at {address} that may be used"
    if host_program("setpriv") is None:
        return "the program setpriv is not installed (Debian: apt-get install util-linux)"
    if (problem := unreached()) is not None:
        return f"containers need a helper of this Python: {problem}"
    from ironcurtain.sandbox.docker_client import connect

    try:
        found = connect(address, PROBE_SECONDS, PROBE_SECONDS).info()
    except Exception as e:  # the package raises exceptions of requests and urllib3
        return f"the Docker Engine at {address} does not answer: {type(e).__name__}"
    return unfit(found)


def unfit(info: Mapping[str, Any]) -> str | None:
    """
    :param info: an Engine's description of itself.
    :returns: why its containers are no sandboxes, in words; ``None`` if they are.
    """
    if is_podman(info):
        return "Podman answers in place of a Docker Engine, and does not take the filter of system calls"
    if missing := [what for member, what in LIMITS.items() if info.get(member) is False]:
        return f"the Docker Engine cannot limit {' and '.join(missing)} here"
    if maps_accounts(info):
        return "the Docker Engine maps accounts to others, so that a container cannot use the files of this one"
    return None


def is_podman(info: Mapping[str, Any]) -> bool:
    """
    :returns: whether an Engine's description of itself is that of Podman, which speaks Docker's API. Its version 4.3
        takes the filter that comes with a container for the name of a file.
    """
    return "BuildahVersion" in info


def maps_accounts(info: Mapping[str, Any]) -> bool:
    """:returns: whether accounts in an Engine's containers are others than here, by its description of itself."""
    return any(option in ("name=rootless", "name=userns") for option in info.get("SecurityOptions") or ())


def inexpressible(sandbox: Sandbox) -> str | None:
    """:returns: why no container can be such a sandbox, in words; ``None`` if one can."""
    if sandbox.listeners:
        # Its program runs as soon as its network exists, and only root could enter that.
        return "containers of the Docker Engine have no network here"
    if sandbox.bound:
        return "these containers of the Docker Engine have everything at its own path"
    return None


def inputs(sandbox: Sandbox, environ: Mapping[str, str]) -> dict[int, bytes]:
    """
    :param environ: environment of this process, with the address of the Engine.
    :returns: the data that the proxy process reads, by descriptor.
    """
    return {ORDER_DESCRIPTOR: msgspec.json.encode(Order(sandbox, engine(environ)))}


def command(argv: Sequence[str], descriptors: Mapping[int, int] = {}) -> list[str]:
    """
    :param descriptors: replacements for the descriptor numbers of :func:`inputs`.
    :returns: the command line that runs ``argv``, with its own environment, in a sandbox.
    """
    order = str(descriptors.get(ORDER_DESCRIPTOR, ORDER_DESCRIPTOR))
    runner = [sys.executable, "-I", "-m", "ironcurtain.sandbox.run_container", order, *argv]
    return [required_program("setpriv"), "--pdeathsig", "KILL", "--", *runner]


def links() -> dict[str, str]:
    """
    :returns: the system directories that are symbolic links on this machine, and so in the image, with their targets.
    """
    return {path: os.readlink(path) for path in SYSTEM if os.path.islink(path)}


def image() -> bytes:
    """:returns: the image's files, as a reproducible tar archive."""
    import tarfile  # with what it imports, slow to import

    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for name in _DIRECTORIES:
            entry = tarfile.TarInfo(name)
            entry.type, entry.mode = tarfile.DIRTYPE, 0o1777 if name == "tmp" else 0o755
            archive.addfile(entry)
        for path, target in sorted(links().items()):
            entry = tarfile.TarInfo(path.lstrip("/"))
            entry.type, entry.linkname = tarfile.SYMTYPE, target
            archive.addfile(entry)
    return packed.getvalue()


def request(
    sandbox: Sandbox, argv: Sequence[str], environment: Mapping[str, str], image_name: str, own: str
) -> dict[str, Any]:
    """
    :param environment: the program's.
    :param own: a directory of the host with an empty ``directory``, and the sandbox's files by their index in
        :attr:`Sandbox.files`.
    :returns: the body of ``POST /containers/create``.
    """
    limits, account = sandbox.limits, sandbox.account
    ids = f"{os.getuid()}:{os.getgid()}" if account is None else account.ids
    return {
        "Image": image_name,
        "Entrypoint": list(argv[:1]),
        "Cmd": list(argv[1:]),
        "User": ids,
        "Env": [f"{name}={value}" for name, value in environment.items()],
        "WorkingDir": sandbox.cwd,
        "Hostname": "ironcurtain",
        "AttachStdin": True,
        "AttachStdout": True,
        "AttachStderr": True,
        "OpenStdin": True,
        "StdinOnce": True,
        "HostConfig": {
            "NetworkMode": "none",
            "IpcMode": "private",
            "CgroupnsMode": "private",
            "CapDrop": ["ALL"],
            "SecurityOpt": ["no-new-privileges", f"seccomp={profile()}"],
            "ReadonlyRootfs": True,
            "Memory": limits.memory,
            "MemorySwap": limits.memory,  # limit of memory plus swap, so no swap
            "PidsLimit": limits.processes,
            "ShmSize": limits.temporary,
            "Ulimits": [
                {"Name": name, "Soft": value, "Hard": value}
                for name, value in (("core", 0), ("nofile", limits.files), ("fsize", limits.file_size))
            ],
            "Tmpfs": dict(_temporary(sandbox)),
            "Mounts": list(_binds(sandbox, own)),
            "LogConfig": {"Type": "none"},
        },
    }


def _temporary(sandbox: Sandbox) -> list[tuple[str, str]]:
    options = f"rw,exec,nosuid,nodev,mode=1777,size={sandbox.limits.temporary}"
    places = ["/tmp", *(path for path, access in sandbox.mounts() if access is Access.EMPTY)]
    return [(place, options) for place in places]


def _binds(sandbox: Sandbox, own: str) -> list[dict[str, Any]]:
    system = [path for path in SYSTEM if os.path.isdir(path) and path not in links()]
    settings = [path for path in SETTINGS if os.path.exists(path)]
    found = {path: (os.path.realpath(path), True) for path in (*system, *settings)}
    found["/sys"] = (f"{own}/directory", True)
    for path, access in sandbox.mounts():
        if access is not Access.EMPTY:
            found[path] = (path, access is Access.READ)
    for number, (path, _) in enumerate(sandbox.files):
        found[path] = (f"{own}/{number}", True)
    return [
        {
            "Type": "bind",
            "Source": source,
            "Target": target,
            "ReadOnly": read_only,
            "BindOptions": {"Propagation": "rprivate"},
        }
        for target, (source, read_only) in found.items()
    ]
