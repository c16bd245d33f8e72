"""
The least that a key costs at the terminal of another host, if a server of NATS carries it.

One small program has the person's terminal, another one a program's; between them is nothing but the server, on this
machine. They use blocking sockets, or nats-py, as a fleet does. Keys are pressed there and at ``ssh`` in turn::

    python -m benchmarks.fleet_bound [--keys 200] [--rounds 3]
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import pty
import select
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import tty
from pathlib import Path

from nats.aio.client import Client
from nats.aio.msg import Msg

from benchmarks.attach import Terminal, key_times, ssh, sshd, wait_for
from benchmarks.sizes import parse
from tests.fleet.hosts import BIN
from tests.ports import free_port

PROGRAM = "while read line; do :; done"
"""Echoes keys, as the kernel does for it."""

FLOOR, SOCKETS, CLIENT = "ssh", "blocking sockets", "nats-py"


def serve(way: str, port: int, here: str, there: str) -> None:
    """
    Be one of the two programs.

    :param here: the subject of what is for this one; it begins with ``program`` if that has the program's terminal.
    :param there: the subject of what is for the other one.
    """
    reads, writes = 0, 1
    if here.startswith("program"):
        child, reads = pty.fork()
        if not child:
            os.execvp("sh", ("sh", "-c", PROGRAM))
        writes = reads
    else:
        tty.setraw(0)
    if way == SOCKETS:
        pass_on(port, here, there, reads, writes)
    else:
        asyncio.run(pass_on_with_client(port, here, there, reads, writes))


def pass_on(port: int, here: str, there: str, reads: int, writes: int) -> None:
    """Speak to the server as directly as can be."""
    server = socket.create_connection(("127.0.0.1", port))
    server.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, True)
    lines = server.makefile("rb")
    lines.readline()
    server.sendall(f'CONNECT {{"verbose":false}}\r\nSUB {here} 1\r\nPING\r\n'.encode())
    assert lines.readline() == b"PONG\r\n"
    os.write(1, b"up\n")
    while True:
        for found in select.select((reads, server.fileno()), (), ())[0]:
            if found != reads:
                head = lines.readline()  # a key is alone, so that nothing is left in the buffer
                if head.startswith(b"MSG"):
                    os.write(writes, lines.read(int(head.split()[-1]) + 2)[:-2])
                elif not head:
                    return
            else:
                data = os.read(reads, 65536)
                server.sendall(b"PUB %b %d\r\n%b\r\n" % (there.encode(), len(data), data))


async def pass_on_with_client(port: int, here: str, there: str, reads: int, writes: int) -> None:
    """Let nats-py speak to it."""
    client, loop, tasks = Client(), asyncio.get_running_loop(), set[asyncio.Task[None]]()
    await client.connect(f"nats://127.0.0.1:{port}")

    async def heard(message: Msg) -> None:
        os.write(writes, message.data)

    def read() -> None:
        task = loop.create_task(client.publish(there, os.read(reads, 65536)))
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    await client.subscribe(here, cb=heard)
    await client.flush()
    loop.add_reader(reads, read)
    os.write(1, b"up\n")
    await asyncio.Event().wait()


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--keys", type=int, default=200, help="keys a round (default 200)")
    parser.add_argument("--rounds", type=int, default=3, help="rounds (default 3)")
    options = parse(parser, keys=10, rounds=1)
    with tempfile.TemporaryDirectory() as directory, contextlib.ExitStack() as stack:
        top, key = Path(directory), Path(directory) / "key"
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)], check=True)

        def begin(*command: str) -> subprocess.Popen[str]:
            process = stack.enter_context(
                subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
            )
            stack.callback(process.kill)
            return process

        port = free_port()
        begin(str(BIN / "nats-server"), "-a", "127.0.0.1", "-p", str(port))
        wait_for(port)
        ways = {FLOOR: Terminal(*ssh(stack.enter_context(sshd(top / "sshd", key, f"sh -c '{PROGRAM}'")), key))}
        for number, way in enumerate((SOCKETS, CLIENT)):
            line = (sys.executable, "-m", "benchmarks.fleet_bound", "--serve", way, str(port))
            program, person = f"program.{number}", f"person.{number}"
            there = begin(*line, program, person).stdout
            assert there is not None
            there.readline()
            ways[way] = Terminal(*line, person, program)
            ways[way].until(b"up")
        for terminal in ways.values():
            time.sleep(0.5)
            terminal.type(b"ready?")
            terminal.until(b"ready?")
            terminal.type(b"\x15")
            terminal.quiet()
        times: dict[str, list[float]] = {way: [] for way in ways}
        for _ in range(options.rounds):
            for way, taken in key_times(ways, options.keys):
                times[way].append(taken)
        floor = statistics.median(times[FLOOR])
        for way, found in times.items():
            median = statistics.median(found)
            print(f"{way:20}{1e3 * median:9.2f} ms p50{median / floor:8.2f} times", flush=True)
        for terminal in reversed(ways.values()):
            terminal.close()


if __name__ == "__main__":
    if sys.argv[1:2] == ["--serve"]:
        serve(sys.argv[2], int(sys.argv[3]), *sys.argv[4:])
    else:
        main()
