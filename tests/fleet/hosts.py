"""A fleet on this machine: servers of NATS in a cluster, and hosts with the installed product."""

from __future__ import annotations

import json
import os
import pwd
import signal
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import permutations
from pathlib import Path
from typing import Any

from click.testing import CliRunner

from ironcurtain.audit.witness_lines import read_heads
from ironcurtain.cli.fleet import fleet
from ironcurtain.fleet.carried import SUBJECTS
from ironcurtain.fleet.heads import heads_file
from ironcurtain.fleet.joining import ServerFiles, key_text, read_credentials, trust
from ironcurtain.fleet.nats import BUCKET
from ironcurtain.home.layout import Home
from ironcurtain.operations import Role
from tests.ports import free_port
from tests.product import Command, Product, wait_until

BIN = Path(sys.executable).parent

ME = f"local:{pwd.getpwuid(os.geteuid()).pw_name}"
"""The person of all hosts."""

EVERYBODY = "everybody"
"""A name at the servers of a :class:`Cluster` that has every permission there."""

DECIDING = (Role.VIEW, Role.APPROVE)
"""The roles of the person on other hosts, if not others are asked for."""


class Host:
    """
    One machine of the fleet. Its daemon writes its log to a file, another one each time that it starts.

    :param inside: the beginning of the command line with which its daemon starts.
    """

    def __init__(self, name: str, inside: Sequence[str] = ()) -> None:
        self.name, self.product, self._inside = name, Product(), inside
        if os.geteuid() == 0:  # our Python is not always where another user reaches it
            self.product.environ["IRONCURTAIN_RUN_AS"] = "0"
        self.home = Home(self.product.home, self.product.home / "run")
        self.daemon: Command | None = None
        self._starts = 0

    def fleet(self, *words: str) -> str:
        """:returns: what a command prints. It runs in this process: to start one takes longer than what it does."""
        environ = {**self.product.environ, "IRONCURTAIN_HOME": str(self.product.home)}
        done = CliRunner().invoke(fleet, words, env=environ, catch_exceptions=False)
        assert done.exit_code == 0, done.output
        return done.output

    def begin(self) -> None:
        """Start the daemon, and wait until it is a member."""
        self.launch()
        self.joined()

    def launch(self) -> None:
        """Start the daemon."""
        self._starts += 1
        self.log.touch()
        self.daemon = self.product.daemon("--logfile", str(self.log), "ironcurtain", inside=self._inside)

    def joined(self) -> None:
        """Wait until the daemon that was started last is a member."""
        wait_until(lambda: f"{self.name} is a member of the fleet" in self.log.read_text())

    def end(self, how: int = signal.SIGTERM) -> None:
        """End the daemon, also one that is stopped."""
        if self.daemon is not None:
            self.daemon.send_signal(how)
            self.daemon.send_signal(signal.SIGCONT)
            self.daemon.communicate()
            self.daemon = None

    @property
    def log(self) -> Path:
        """The log of the daemon that was started last."""
        return self.product.person / f"daemon-{self._starts}.log"

    @property
    def known(self) -> Any:
        """What its daemon knows of the fleet; nothing before it is a member."""
        try:
            return json.loads(self.home.fleet_members.read_bytes())
        except FileNotFoundError:
            return {"members": (), "unreached": "it does not run"}

    def sees(self, other: str, state: str) -> bool:
        """:returns: whether another host is ``here``, or ``lost``, for its daemon."""
        return any(
            each["member"]["host"] == other and each["lost"] == (state == "lost") for each in self.known["members"]
        )

    @property
    def asking(self) -> int:
        """The number of its questions that wait; unlike a command, this is cheap to ask again and again."""
        return sum(session["pending"] for session in self.product.sessions())

    def waiting(self) -> list[str]:
        """:returns: the numbers of the questions that wait, once its command has shown them to the person."""
        found = [str(each["number"]) for each in self.product.json("escalations") if not each["outcome"]]
        if found:
            self.product.run("escalations")
        return found

    @property
    def decisions(self) -> list[str]:
        """Outcome and principal of all decisions in its audit logs."""
        logs = [path.read_bytes() for path in sorted(self.home.sessions.glob("*/audit.jsonl"))]
        records = [json.loads(line) for log in logs for line in log.splitlines()]
        return [f"{record['outcome']} {record['by']}" for record in records if record["kind"] == "decision"]

    def witnesses(self, other: Host) -> bool:
        """:returns: whether it has the last head of the only session of another host."""
        (log,) = other.home.sessions.glob("*/audit.jsonl")
        if not (kept := heads_file(self.home, other.name)).exists():  # none has come
            return False
        with kept.open("rb") as lines:
            heads = [head.sequence for head in read_heads(lines)]
        return log.read_bytes().count(b"\n") - 1 in heads

    def questions(self, count: int = 1) -> str:
        """:returns: a script of an agent that wants to read a file outside its workspace, so many times."""
        file = self.product.person / "names.txt"
        file.write_text("Ada")
        turn = {"text": "Let me look.", "code": f"print(filesystem.read_text_file({str(file)!r}))"}
        return self.product.script(*[turn] * count, {"text": "All done."})

    def ask(self, count: int = 1) -> Command:
        """:returns: a session of it whose agent asks so many times."""
        return self.product.start("start", "--backend", self.questions(count), "Read it", stdin=subprocess.DEVNULL)


@dataclass(frozen=True, slots=True)
class Site:
    """
    Where a server and a host run.

    :param address: of the server.
    :param inside: the beginning of the command line of what runs there.
    """

    address: str = "127.0.0.1"
    inside: tuple[str, ...] = ()


class Node:
    """One server of the cluster, with data of its own."""

    def __init__(self, configuration: Path, inside: Sequence[str]) -> None:
        self._line = [*inside, str(BIN / "nats-server"), "-c", str(configuration)]
        self._log = configuration.with_suffix(".log")
        self._process: subprocess.Popen[bytes] | None = None

    def begin(self) -> None:
        """Start it."""
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(self._line, stderr=log, stdout=subprocess.DEVNULL)

    def answers(self) -> bool:
        """:returns: whether it has started."""
        return b"Server is ready" in self._log.read_bytes()

    def send(self, number: int) -> None:
        """Send it a signal."""
        if self._process is not None:
            self._process.send_signal(number)

    def end(self, how: int = signal.SIGKILL) -> None:
        """End it."""
        if self._process is not None:
            self.send(signal.SIGCONT)
            self.send(how)
            self._process.wait()
            self._process = None


class Cluster:
    """
    Servers of NATS.

    :param files: of a host that has begun a fleet.
    :param sites: of the servers.
    :ivar addresses: of all of them.
    """

    def __init__(self, files: ServerFiles, sites: Sequence[Site]) -> None:
        self._ports, self._routes = [free_port() for _ in sites], [free_port() for _ in sites]
        self._monitors = [free_port() for _ in sites]
        self.addresses = [f"tls://{site.address}:{port}" for site, port in zip(sites, self._ports, strict=True)]
        self._top, self._files, self._sites = tempfile.TemporaryDirectory(), files, sites
        self._paths = [Path(self._top.name) / f"node-{number}.conf" for number, _ in enumerate(sites)]
        self.nodes = [Node(path, site.inside) for path, site in zip(self._paths, sites, strict=True)]

    def write(self) -> None:
        """Write the servers' files, with the hosts that are permitted now."""
        text = self._files.configuration.read_text()
        for some in (f"$KV.{BUCKET}.{EVERYBODY}", f"{SUBJECTS}.{EVERYBODY}.*"):
            text = text.replace(f'"{some}"', '">"')
        common = [line for line in text.splitlines() if not line.startswith("server_name")]
        for number, (path, site) in enumerate(zip(self._paths, self._sites, strict=True)):
            lines = [line for line in common if not line.startswith(("listen:", "jetstream:"))]
            store = {"store_dir": f"{self._top.name}/data-{number}", "max_mem": "64M", "max_file": "1G"}
            every = zip(self._sites, self._routes, strict=True)
            urls = ", ".join(f"nats://{each.address}:{route}" for each, route in every)
            lines += [
                f"listen: {site.address}:{self._ports[number]}",
                f"http: {site.address}:{self._monitors[number]}",
                f"server_name: node-{number}",
                f"jetstream: {json.dumps(store)}",
            ]
            if len(self._sites) > 1:
                listen = f"{site.address}:{self._routes[number]}"
                lines.append(f"cluster: {{name: fleet, listen: '{listen}', ping_interval: 1s, routes: [{urls}]}}")
            path.write_text("\n".join(lines) + "\n")

    def begin(self) -> None:
        """Start all, and wait until they answer."""
        self.write()
        for node in self.nodes:
            node.begin()
        for node in self.nodes:
            wait_until(node.answers)

    def reload(self) -> None:
        """Have them read their files again."""
        self.write()
        for node in self.nodes:
            node.send(signal.SIGHUP)

    def bytes_of(self, user: str) -> int:
        """:returns: the bytes that the servers have exchanged with a host."""
        found = 0
        for port in self._monitors:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/connz?auth=1&limit=10000") as answer:
                connections = json.load(answer)["connections"]
            found += sum(
                each["in_bytes"] + each["out_bytes"] for each in connections if each["authorized_user"] == user
            )
        return found

    def end(self) -> None:
        """End all, and remove their data."""
        for node in self.nodes:
            node.end()
        self._top.cleanup()


class Fleet:
    """
    Hosts that trust each other, and their servers.

    :param names: of the hosts; the first has the servers' files.
    :param sites: of the servers. If there is a network between them, each host is at one of them, and knows no other.
    :param roles: that each host lets the person of the others have.
    """

    def __init__(
        self, names: Sequence[str], sites: Sequence[Site] = (Site(),), roles: Sequence[Role] = DECIDING
    ) -> None:
        apart = [site for site in sites if site.inside] or [Site()] * len(names)
        self.hosts = {name: Host(name, site.inside) for name, site in zip(names, apart, strict=False)}
        first, people = self.hosts[names[0]], {ME: roles}
        addresses = [word for site in sites for word in ("--address", site.address)]
        first.fleet("init", first.name, "--listen", f"127.0.0.1:{free_port()}", *addresses)
        self.files = ServerFiles(first.home.fleet_server)
        self.cluster = Cluster(self.files, sites)
        for name in names[1:]:
            host = self.hosts[name]
            first.fleet("add", name, "--output", str(host.product.person / "join"))
            host.fleet("join", str(host.product.person / "join"), "--person", f"{ME}={','.join(roles)}")
        for here, there in permutations(names, 2):
            if here == names[0] or there != names[0]:  # which 'join' has done
                trust(self.hosts[here].home, there, key_text(self.hosts[there].home), people)
        for number, host in enumerate(self.hosts.values()):
            path, known = host.home.fleet_credentials, self.cluster.addresses
            path.write_bytes(json.dumps(json.loads(path.read_bytes()) | {"replicas": len(sites)}).encode())
            servers = known[number : number + 1] if apart[0].inside else known
            text = host.home.config.read_text().replace("[fleet]\n", f"[fleet]\nservers = {json.dumps(servers)}\n")
            host.home.config.write_text(f"{text}[escalation]\ntimeout_seconds = 3600\n")
            read_credentials(path)

    def begin(self) -> None:
        """Start all, and wait until everybody sees everybody."""
        self.cluster.begin()
        self.begin_hosts()

    def begin_hosts(self) -> None:
        """Start the daemons, and wait until everybody sees everybody."""
        for host in self.hosts.values():
            host.launch()
        for host in self.hosts.values():
            host.joined()
        self.meet()

    def meet(self) -> None:
        """Wait until everybody sees everybody."""
        for here, there in permutations(self.hosts.values(), 2):
            wait_until(lambda: here.sees(there.name, "here"))  # noqa: B023

    def end(self) -> list[str]:
        """
        End everything.

        :returns: the command lines of processes that commands left behind.
        """
        for host in self.hosts.values():
            host.end()
        self.cluster.end()
        return [line for host in self.hosts.values() for line in host.product.close()]
