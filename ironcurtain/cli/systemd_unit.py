"""``ironcurtain systemd-unit``."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import click

from ironcurtain.cli.output import home
from ironcurtain.errors import Unavailable

TAKEN = ("PATH", "DOCKER_HOST")
"""Variables that the daemon gets as they are now: what its sessions find should be what this shell finds."""

UNIT = """\
# {intro}

[Unit]
Description=IronCurtain: runs AI agents under policy
{after}
[Service]
# The daemon says itself when it serves, when it reads its files again, and that it is not stuck.
Type=notify
ExecStart={twistd} -n --pidfile= ironcurtain
# A wrong file fails the reload, with its reason in the journal; what was read before stays in force.
ExecReload={command} reload
{environment}
WatchdogSec=60
Restart=on-failure
RestartSec=5
# A wrong configuration does not mend itself.
RestartPreventExitStatus=64 78
# The daemon ends its sessions in order, and within a minute; only what is left then is killed.
KillMode=mixed
TimeoutStopSec=75
# An MCP server that takes all memory is no reason to end the others.
OOMPolicy=continue
# Sessions need Docker's socket, bubblewrap (which makes namespaces and mounts), your files, and programs of your own:
# options such as PrivateTmp, ProtectHome, ProtectSystem, ProtectKernelTunables and RestrictNamespaces break them.
NoNewPrivileges=yes
LockPersonality=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
UMask=0077
LimitCORE=0

[Install]
WantedBy={target}
"""


@click.command("systemd-unit")
def systemd_unit() -> None:
    """
    Print a unit by which systemd runs the daemon, for this installation and this home.

    \b
    As yourself: a user unit, which needs no root.
      mkdir -p ~/.config/systemd/user
      ironcurtain systemd-unit > ~/.config/systemd/user/ironcurtain.service
      systemctl --user daemon-reload
      systemctl --user enable --now ironcurtain
      loginctl enable-linger     (so that it runs while you are not logged in)
    As root: a system unit, for /etc/systemd/system.

    The unit holds no key. Say in config.toml where to fetch it: { command = "..." } or { file = "..." }.
    """
    programs = Path(sys.executable).parent
    if not (programs / "twistd").exists():
        raise Unavailable(
            f"there is no twistd beside {sys.executable}: install IronCurtain in an environment of its own"
        )
    variables = {"IRONCURTAIN_HOME": str(home().path), **{k: os.environ[k] for k in TAKEN if os.environ.get(k)}}
    click.echo(unit(programs, variables, system=os.geteuid() == 0), nl=False)


def unit(programs: Path, variables: dict[str, str], *, system: bool) -> str:
    """
    :param programs: the directory in which twistd and our command are.
    :param system: whether it is for systemd itself and not for the systemd of a user.
    :returns: the text of the unit.
    """
    environment = [f"Environment={quoted(f'{name}={value}')}" for name, value in variables.items()]
    if system:
        environment.insert(0, "User=root")  # that sets HOME
    return UNIT.format(
        intro=f"For {'/etc/systemd/system' if system else '~/.config/systemd/user'}/ironcurtain.service; "
        "made by 'ironcurtain systemd-unit'.",
        after="After=network.target docker.service\n" if system else "",
        twistd=quoted(str(programs / "twistd")),
        command=quoted(str(programs / "ironcurtain")),
        environment="\n".join(environment),
        target="multi-user.target" if system else "default.target",
    )


def quoted(text: str) -> str:
    """:returns: a word as units have it (systemd.syntax(7)): a program's path, or a variable with its value."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("%", "%%") + '"'
