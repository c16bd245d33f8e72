"""
A hostile program: it tries each way out of a sandbox that we know of, and prints what became of each, as JSON lines.

It runs where an agent or its tools run, with nothing but Python's own modules. Its one argument is a JSON object: what
there is to reach outside. Whoever starts it looks from the outside as well, and does not rely on what it prints.
"""

import contextlib
import ctypes
import errno
import json
import mmap
import os
import resource
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile

TARGETS = json.loads(sys.argv[1])
SECRET, FILE, WORK = TARGETS["secret"], TARGETS["file"], TARGETS["workspace"] or tempfile.gettempdir()
LIBC = ctypes.CDLL(None, use_errno=True)
ATTEMPTS = []


class Refused(Exception):
    """The attempt failed; the message says how."""


def attempt(group, what):
    def keep(function):
        ATTEMPTS.append((group, what, function))
        return function

    return keep


def holds_secret(data):
    if isinstance(data, str):
        data = data.encode(errors="surrogateescape")
    if SECRET.encode() not in data:
        raise Refused("something else was there")


def read(path):
    with open(path, "rb", buffering=0) as file:
        holds_secret(file.read(65536))


def write(path, mode="ab"):
    with open(path, mode) as file:
        file.write(b"written by the hostile program\n")


def wrote():
    """Judge an attempt to write to the file outside by its effect; what cannot be seen here is seen from outside."""
    try:
        with open(FILE, "rb") as file:
            content = file.read(65536)
    except OSError as e:
        raise Refused(f"the file cannot be opened here ({e.strerror}); whether it changed is seen outside") from None
    if content == f"{SECRET}\n".encode():
        raise Refused("the file is as it was")


def call(name, *arguments):
    number = TARGETS["calls"].get(name)
    if number is None:
        raise Refused("this machine has no such call")
    ctypes.set_errno(0)
    result = LIBC.syscall(ctypes.c_long(number), *(ctypes.c_long(value) for value in (*arguments, 0, 0, 0, 0, 0)[:6]))
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result


def in_child(function, seconds=20):
    """Run what may end or cripple this program in a child, and hear from it by a pipe."""
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        os.close(reader)
        signal.alarm(seconds)
        try:
            function()
            os.write(writer, b"done")
        except BaseException as e:
            os.write(writer, f"{type(e).__name__}: {e}".encode()[:500])
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as file:
        said = file.read()
    _, status = os.waitpid(child, 0)
    if said != b"done":
        raise Refused(said.decode(errors="replace") or f"ended by signal {os.WTERMSIG(status)}")


def connect(family, address, kind=socket.SOCK_STREAM):
    with socket.socket(family, kind) as it, contextlib.ExitStack() as undo:
        it.settimeout(3)
        if family == socket.AF_UNIX and len(os.fsencode(address)) > 100:  # more than an address holds
            undo.callback(os.chdir, os.getcwd())
            os.chdir(os.path.dirname(address))
            address = os.path.basename(address)
        it.connect(address)
        it.sendall(b"GET /from-inside HTTP/1.0\r\n\r\n")


def run(*words, cwd=WORK, text=""):
    done = subprocess.run(
        words, cwd=cwd, input=text.encode(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=20
    )
    holds_secret(done.stdout)
