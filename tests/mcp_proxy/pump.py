"""Join standard input and output to a UNIX socket, as socat does for agents in their containers: ``pump.py SOCKET``."""

from __future__ import annotations

import os
import socket
import sys
import threading


def main() -> None:
    with socket.socket(socket.AF_UNIX) as stream:
        stream.connect(sys.argv[1])

        def inward() -> None:
            while data := os.read(0, 65536):
                stream.sendall(data)
            stream.shutdown(socket.SHUT_WR)

        threading.Thread(target=inward, daemon=True).start()
        while data := stream.recv(65536):
            os.write(1, data)


if __name__ == "__main__":
    main()
