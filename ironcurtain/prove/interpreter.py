"""Programs that try to leave the built-in agent's interpreter."""

from __future__ import annotations

from typing import Any

from ironcurtain.codemode.monty import MontyInterpreters
from ironcurtain.prove.report import Attempt

PROGRAMS = (
    ("read a file", "open({file!r}).read()"),
    ("read a file by pathlib", "from pathlib import Path\nPath({file!r}).read_text()"),
    ("list a directory", "import os\nos.listdir('/')"),
    ("read the environment", "import os\nlen(os.environ) and str(os.environ)"),
    ("run a command", "import os\nos.system('id')"),
    ("start a process", "import subprocess\nsubprocess.run(['id'])"),
    ("open a socket", "import socket\nsocket.socket()"),
    ("call the C library", "import ctypes\nctypes.CDLL(None)"),
    ("import by name", "__import__('os').getpid()"),
    ("import by importlib", "import importlib\nimportlib.import_module('os')"),
    ("read a file by evaluating text", "eval('open({file!r}).read()')"),
    ("run a command by executing text", "exec('import os; os.system(\"id\")')"),
    ("find all classes", "().__class__.__bases__[0].__subclasses__()"),
    ("reach a function's globals", "def f(): pass\nf.__globals__"),
    ("reach the frames", "import sys\nsys._getframe()"),
    ("call a tool that there is not", "import filesystem\nfilesystem.read_text_file(path={file!r})"),
    ("take 16 GiB of memory", "x = ['a' * 1000000]\nwhile True:\n    x = x + x"),
    ("recurse for ever", "def f(n):\n    return f(n + 1)\nf(0)"),
    ("run for ever", "while True:\n    pass"),
)
"""What each is after, and the program; a program that ends without an error has succeeded."""


async def attempts(interpreters: MontyInterpreters, file: str, secret: str) -> list[Attempt]:
    """
    Run each program in an interpreter without any tool.

    :param file: a path outside, which holds the secret.
    :raises Unavailable: the interpreter cannot be started.
    """

    async def no_tool(*_: Any) -> Any:
        raise PermissionError("there is no tool")

    found = []
    interpreter = await interpreters([], no_tool)  # type: ignore[arg-type]
    try:
        for what, program in PROGRAMS:
            done = await interpreter.run(program.format(file=file))
            got_out = done.error is None or secret in f"{done.output}{done.value}{done.error}"
            said = (done.error or "").strip().rpartition("\n")[2]
            found.append(Attempt("programs", what, "succeeded" if got_out else "failed", said[:200]))
    finally:
        await interpreter.close()
    return found
