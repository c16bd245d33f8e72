"""
Connects an agent to the MCP proxy of its session: ``python -I -S relay.py SOCKET``. What the agent writes to this
program's input goes to the socket, and back. It is run by its path, without the rest of the package.

Agents wait until it runs, so it imports no more than it needs.
"""

from __future__ import annotations

import os
import select
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    import socket
else:
    import _socket as socket  # the C module behind it: to import its enumerations takes as long as all else here

PIECE = 65536


def main() -> None:
    """Relay until the socket closes; the end of the input is passed on."""
    proxy = socket.socket(socket.AF_UNIX)
    proxy.connect(sys.argv[1])
    reading: list[socket.socket | int] = [0, proxy]
    while proxy in reading:
        for ready in select.select(reading, [], [])[0]:
            if ready == 0:
                if data := os.read(0, PIECE):
                    proxy.sendall(data)
                else:
                    reading.remove(0)
                    proxy.shutdown(socket.SHUT_WR)
            elif data := proxy.recv(PIECE):
                _write_all(data)
            else:
                return


def _write_all(data: bytes) -> None:
    while data:
        data = data[os.write(1, data) :]


if __name__ == "__main__":
    main()
