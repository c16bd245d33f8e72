"""
A program that logs in with a program in a container: ``python at_login.py FACTS``, which are JSON.

It prints what was kept, or why nothing was.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

from msgspec.structs import replace
from twisted.internet.endpoints import TCP4ClientEndpoint, connectProtocol
from twisted.internet.interfaces import IProtocol

from ironcurtain.accounts.login import Login
from ironcurtain.accounts.login_programs import PROGRAMS, LoginProgram
from ironcurtain.cli.run import run
from ironcurtain.container.engine import Engine
from ironcurtain.container.sidecar import SocketWay
from ironcurtain.container_agent.account_login import AccountLogin, LoginSurroundings
from ironcurtain.errors import IronCurtainError
from ironcurtain.home.layout import Home
from ironcurtain.home.sections import Resources
from ironcurtain.process.accounts import session_account
from ironcurtain.terminal.local import LocalTerminal

FACTS = json.loads(sys.argv[1])
"""``engine image home account``, and either ``script ends`` or ``port ca`` of servers for the account's own program."""


class ToStub:
    """Takes one port of this machine for every host."""

    def __init__(self, reactor: Any) -> None:
        self._reactor = reactor

    async def connect(self, host: str, port: int, protocol: IProtocol, *, private: bool = False) -> None:
        """See :class:`ironcurtain.network.relay.Dialer`."""
        await connectProtocol(TCP4ClientEndpoint(self._reactor, "127.0.0.1", FACTS["port"]), protocol)


def chosen() -> LoginProgram:
    """:returns: the program, which trusts the servers."""
    program = PROGRAMS[FACTS["account"]]
    if "script" in FACTS:
        return replace(program, argv=("sh", "-c", FACTS["script"]), ends=FACTS["ends"])
    trust = dict.fromkeys(("NODE_EXTRA_CA_CERTS", "SSL_CERT_FILE"), "/home/agent/ca.pem")
    return replace(
        program, environment={**program.environment, **trust}, files={**program.files, "ca.pem": FACTS["ca"]}
    )


async def main(reactor: Any) -> Login:
    """:returns: the login."""

    async def ensure(agent: str, progress: Any) -> str:
        return str(FACTS["image"])

    around = LoginSurroundings(
        reactor,
        Home(Path(FACTS["home"]), Path(FACTS["home"]) / "runtime"),
        Engine(reactor, FACTS["engine"]),
        ToStub(reactor),
        session_account("", os.environ, None, os.geteuid()),
        SocketWay(FACTS.get("sockets", "auto")),
        Resources(),
        ensure,
        print,
    )
    return await AccountLogin(FACTS["account"], chosen(), around).run(LocalTerminal(reactor))


try:
    found = run(main)
    print("kept", found.title, "|", found.access.reveal()[:16], "end")
except IronCurtainError as e:
    print("error", e, "end")
