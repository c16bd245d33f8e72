"""
The library libghostty-vt, which the package pyghostty contains.

pyghostty itself reads all declarations of the library whenever it is imported, which took half of the time until a
process with a screen was ready. Here only what is used is declared, in ``data/ghostty.h``.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

from cffi import FFI  # type: ignore[import-untyped, unused-ignore]


class GhosttyError(Exception):
    """A call of the library failed."""


def _library() -> str:
    package = find_spec("pyghostty")
    if package is None or package.origin is None:
        raise ImportError("pyghostty is not installed")
    (library,) = Path(package.origin).with_name("_lib").glob("libghostty-vt.*")  # its ending is the system's
    return str(library)


ffi: Any = FFI()
"""Makes and reads values of the library's types."""

ffi.cdef((Path(__file__).parent / "data" / "ghostty.h").read_text())

lib: Any = ffi.dlopen(_library())
"""The library's functions and constants."""


def check(result: int, what: str) -> None:
    """
    :param what: names the call.
    :raises GhosttyError: it failed.
    """
    if result:
        raise GhosttyError(f"{what} failed: {result}")


def init_sized(kind: str) -> Any:
    """:returns: a pointer to a new structure in which the fields ``size``, also those of structures in it, are set."""
    made = ffi.new(f"{kind}*")
    _set_sizes(made)
    return made


def _set_sizes(pointer: Any) -> None:
    kind = ffi.typeof(pointer).item
    for name, member in kind.fields:
        if name == "size":
            pointer.size = ffi.sizeof(kind)
        elif member.type.kind == "struct":
            _set_sizes(ffi.addressof(pointer[0], name))
