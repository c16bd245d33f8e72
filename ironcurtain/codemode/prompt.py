"""What the model is told about code mode: the language, what it lacks, and the tools. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from ironcurtain.codemode.functions import Module
from ironcurtain.codemode.limits import Limits
from ironcurtain.codemode.prelude import SUMMARY
from ironcurtain.codemode.stubs import documentation, first_sentence, signature

TOOLS_LIMIT = 40_000
"""Most characters for the list of tools, about 10 000 tokens (our choice); longer lists are shortened evenly."""

_LANGUAGE = """\
Programs are Python, run in a small interpreter. Variables stay from one program to the next. What print() writes and
the value of the last expression are the result. Tools are functions in one module per server, already imported; a call
returns when it is done, without await, and may take long because a person may be asked. Text results are str;
structured results are dicts and lists. A call that is denied raises PermissionError, one that fails RuntimeError, both
with the reason as message: read it, and do not repeat a denied call.

There is no file system, network or process besides the tools: no open(), no subprocess, no environment.
Modules there are: asyncio base64 binascii bisect collections copy csv dataclasses datetime decimal functools hashlib
itertools json math os.path pathlib (paths only) random re sys time tomllib typing unicodedata. No others.
Not supported: yield, class inheritance (so no own exceptions or Enum), @property, @classmethod, @staticmethod, super(),
del, re.sub with a function. Tools cannot be called inside sorted(key=...), map(...) or filter(...): use a loop or a
list comprehension. Wrong tool names and arguments are reported before anything runs."""

_LIMITS = """\
One program may compute for {seconds:g} s (waiting for tools is not counted) and use {memory} MB; after exceeding that
all variables are lost. Output over {result} kB is cut in the middle: print what you need, not everything."""


def language(limits: Limits) -> str:
    """What the interpreter can and cannot do, for the description of the tool that runs programs."""
    bounds = _LIMITS.format(
        seconds=limits.run_seconds, memory=limits.memory_bytes // 10**6, result=limits.result_bytes // 1000
    )
    return f"{_LANGUAGE}\n\n{bounds}\n\nAlways there:\n{SUMMARY}"


def tools(modules: Sequence[Module], limit: int = TOOLS_LIMIT) -> str:
    """
    The list of tools, in as much detail as fits.

    :param limit: most characters. Descriptions, then signatures, then names are left out where it is exceeded.
    """
    if not modules:
        return "There are no tools in this session."
    full = "\n".join(documentation(module, each) for module in modules for each in module.functions)
    if len(full) <= limit:
        return full
    hint = '\nThe rest is told by tools.help("server") and tools.help("server.tool").'
    short = "\n".join(f"{signature(m, each)}  # {first_sentence(each)}" for m in modules for each in m.functions)
    if len(short) + len(hint) <= limit:
        return short + hint
    listed = "\n".join(f"{m.identifier}: {', '.join(each.identifier for each in m.functions)}" for m in modules)
    return (listed if len(listed) + len(hint) <= limit else f"{listed[: limit - len(hint) - 1]}…") + hint
