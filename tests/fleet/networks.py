"""Machines with a network between them that can be cut: network namespaces, and a switch in one of them."""

from __future__ import annotations

import os
import subprocess
from unittest import SkipTest

from tests.fleet.hosts import Site
from tests.programs import program

PREFIX = "10.213.7."
"""The beginning of the addresses, which are nowhere but in the namespaces."""


class Networks:
    """
    :param count: number of machines.
    :raises SkipTest: nobody but root may make them, and not in every container.
    :ivar sites: the machines.
    """

    def __init__(self, count: int) -> None:
        if os.geteuid() != 0:
            raise SkipTest("only root may make networks")
        self._enter, self._ip, unshare = program("nsenter"), program("ip"), program("unshare")
        self._holders: list[subprocess.Popen[bytes]] = []
        try:
            for _ in range(count + 1):
                line = [unshare, "--net", "sh", "-c", "echo; exec sleep 100000"]
                self._holders.append(
                    holder := subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
                )
                assert holder.stdout is not None
                if not holder.stdout.readline():
                    raise SkipTest("no network can be made on this machine")
            self._run(0, "link add switch type bridge")
            self._run(0, "link set switch up")
            for number in range(1, count + 1):
                self._run(0, f"link add port{number} type veth peer name eth netns {self._holders[number].pid}")
                self._run(0, f"link set port{number} master switch up")
                self._run(number, f"address add {PREFIX}{number}/24 dev eth")
                self._run(number, "link set eth up")
                self._run(number, "link set lo up")
        except BaseException:
            self.close()
            raise
        self.sites = [Site(f"{PREFIX}{number}", self._inside(number)) for number in range(1, count + 1)]

    def cut(self, number: int) -> None:
        """:param number: of the machine, from 0: it and the others hear nothing of each other any more."""
        self._run(0, f"link set port{number + 1} down")

    def join(self, number: int) -> None:
        """:param number: of the machine that is cut off, and is connected again."""
        self._run(0, f"link set port{number + 1} up")

    def close(self) -> None:
        """Remove them, once nothing runs there any more."""
        for holder in self._holders:
            holder.kill()
            holder.communicate()

    def _inside(self, number: int) -> tuple[str, ...]:
        return (self._enter, f"--net=/proc/{self._holders[number].pid}/ns/net")

    def _run(self, number: int, words: str) -> None:
        done = subprocess.run(
            [*self._inside(number), self._ip, *words.split()], capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise SkipTest(f"no network can be made on this machine: {done.stderr.strip()}")
