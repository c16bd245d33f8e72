"""A fleet on this machine, for benchmarks: servers of NATS in a cluster, and hosts with the installed product."""

from __future__ import annotations

import json
import os
import pwd
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from itertools import permutations
from pathlib import Path

from benchmarks.fleet_simulated import USER
from ironcurtain.fleet.carried import SUBJECTS
from ironcurtain.fleet.joining import ServerFiles, key_text, read_credentials, trust
from ironcurtain.fleet.nats import BUCKET
from ironcurtain.home.layout import Home
from ironcurtain.operations import Role
from tests.fleet.test_product import Host, free_port, wait_until

BIN = Path(sys.executable).parent

ME = f"local:{pwd.getpwuid(os.geteuid()).pw_name}"
"""The person of all hosts."""


def home_of(host: Host) -> Home:
    """:returns: the home of a host."""
    return Home(host.product.home, host.product.home / "run")


class Node:
    """One server of the cluster, with data of its own."""

    def __init__(self, configuration: Path) -> None:
        self._configuration = configuration
        self._process: subprocess.Popen[bytes] | None = None

    def begin(self) -> None:
        """Start it."""
        line = [str(BIN / "nats-server"), "-c", str(self._configuration)]
        self._process = subprocess.Popen(line, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)

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
    :param size: number of servers.
    :ivar addresses: of all of them.
    """

    def __init__(self, files: ServerFiles, size: int) -> None:
        ports, routes = [free_port() for _ in range(size)], [free_port() for _ in range(size)]
        self.addresses, self.monitors = [f"tls://127.0.0.1:{port}" for port in ports], [free_port() for _ in ports]
        self._top, self._files, self._size, self._routes = tempfile.TemporaryDirectory(), files, size, routes
        self._ports = ports
        self._paths = [Path(self._top.name) / f"node-{number}.conf" for number in range(size)]
        self.nodes = [Node(path) for path in self._paths]

    def write(self) -> None:
        """Write the servers' files, with the hosts that are permitted now; simulated ones have a common name there."""
        text = self._files.configuration.read_text()
        for one, all_ in ((f"$KV.{BUCKET}.{USER}", f"$KV.{BUCKET}.*"), (f"{SUBJECTS}.{USER}.*", f"{SUBJECTS}.*.*")):
            text = text.replace(f'"{one}"', f'"{all_}"')
        common = [line for line in text.splitlines() if not line.startswith("server_name")]
        for number, path in enumerate(self._paths):
            lines = [line for line in common if not line.startswith(("listen:", "jetstream:"))]
            store = {"store_dir": f"{self._top.name}/data-{number}", "max_mem": "64M", "max_file": "1G"}
            urls = ", ".join(f"nats://127.0.0.1:{route}" for route in self._routes)
            lines += [
                f"listen: 127.0.0.1:{self._ports[number]}",
                f"http: 127.0.0.1:{self.monitors[number]}",
                f"server_name: node-{number}",
                f"jetstream: {json.dumps(store)}",
            ]
            if self._size > 1:
                lines.append(f"cluster: {{name: fleet, listen: '127.0.0.1:{self._routes[number]}', routes: [{urls}]}}")
            path.write_text("\n".join(lines) + "\n")

    def begin(self) -> None:
        """Start all."""
        self.write()
        for node in self.nodes:
            node.begin()

    def reload(self) -> None:
        """Have them read their files again."""
        self.write()
        for node in self.nodes:
            node.send(signal.SIGHUP)

    def bytes_of(self, user: str) -> int:
        """:returns: the bytes that the servers have exchanged with a host."""
        found = 0
        for port in self.monitors:
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


class Member(Host):
    """A host whose daemon writes its log to a file, another one each time that it starts."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self._starts = 0

    def begin(self) -> None:
        """Start the daemon, and wait until it is a member."""
        self.launch()
        self.joined()

    def launch(self) -> None:
        """Start the daemon."""
        self._starts += 1
        self._log.touch()
        line = [str(BIN / "twistd"), "-n", "--pidfile=", "--logfile", str(self._log), "ironcurtain"]
        self.daemon = subprocess.Popen(  # type: ignore[assignment]
            line, env=self.product.environ, cwd=self.product.person, stdin=subprocess.DEVNULL
        )

    def joined(self) -> None:
        """Wait until the daemon that was started last is a member."""
        wait_until(lambda: f"{self.name} is a member of the fleet" in self._log.read_text())

    @property
    def _log(self) -> Path:
        return self.product.person / f"daemon-{self._starts}.log"


class Fleet:
    """
    Hosts that trust each other, and their servers.

    :param names: of the hosts; the first has the servers' files.
    :param nodes: number of servers.
    :param roles: that each host lets the person of the others have.
    """

    def __init__(self, names: tuple[str, ...], nodes: int, roles: tuple[Role, ...] = (Role.VIEW, Role.APPROVE)) -> None:
        self.hosts = {name: Member(name) for name in names}
        first = self.hosts[names[0]]
        first.fleet("init", first.name, "--listen", f"127.0.0.1:{free_port()}")
        self.files = ServerFiles(home_of(first).fleet_server)
        self.cluster = Cluster(self.files, nodes)
        for name in names[1:]:
            host = self.hosts[name]
            first.fleet("add", name, "--output", str(host.product.person / "join"))
            host.fleet("join", "../join", "--person", f"{ME}={','.join(roles)}")
        for here, there in permutations(names, 2):
            home = home_of(self.hosts[here])
            if here == names[0] or there != names[0]:
                trust(home, there, key_text(home_of(self.hosts[there])), {ME: roles})
        for host in self.hosts.values():
            path = home_of(host).fleet_credentials
            path.write_bytes(json.dumps(json.loads(path.read_bytes()) | {"replicas": nodes}).encode())
            config = home_of(host).config
            config.write_text(
                config.read_text().replace("[fleet]\n", f"[fleet]\nservers = {json.dumps(self.cluster.addresses)}\n")
                + "[escalation]\ntimeout_seconds = 3600\n"
            )
            read_credentials(path)

    def begin(self) -> None:
        """Start all, and wait until everybody sees everybody."""
        self.cluster.begin()
        time.sleep(1)
        for host in self.hosts.values():
            host.launch()
        for host in self.hosts.values():
            host.joined()
        for here, there in permutations(self.hosts.values(), 2):
            wait_until(lambda: here.sees(there.name, "here"))  # noqa: B023

    def end(self) -> None:
        """End everything."""
        for host in self.hosts.values():
            if host.daemon is not None:
                host.daemon.send_signal(signal.SIGCONT)
            host.end()
        self.cluster.end()
        for host in self.hosts.values():
            host.product.close()
