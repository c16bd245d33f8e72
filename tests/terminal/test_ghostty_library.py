"""What is declared of libghostty-vt is what pyghostty, which ships it, declares."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from pyghostty.core import ffi as whole  # type: ignore[import-untyped, unused-ignore]
from pyghostty.core import lib as whole_lib
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.terminal import ghostty_library
from ironcurtain.terminal.ghostty_library import ffi, lib

DECLARED = (Path(ghostty_library.__file__).parent / "data" / "ghostty.h").read_text()


def layout(of: Any, kind: Any) -> Any:
    """:returns: a type as it lies in memory: a number has a size, and an enumeration is one, too."""
    if kind.kind in ("struct", "union"):
        return [(name, field.offset, layout(of, field.type)) for name, field in kind.fields or ()]
    if kind.kind == "function":
        return [layout(of, each) for each in (kind.result, *kind.args)]
    return kind.kind if kind.kind in ("void", "pointer") else of.sizeof(kind)


class DeclarationTests(SynchronousTestCase):
    def test_constants_have_the_same_values(self) -> None:
        names = re.findall(r"#define (\w+)", DECLARED)
        self.assertEqual(
            {name: getattr(lib, name) for name in names}, {name: getattr(whole_lib, name) for name in names}
        )

    def test_structures_have_the_same_layout(self) -> None:
        for name in re.findall(r"^\} (\w+);", DECLARED, re.MULTILINE):
            ours, theirs = ffi.typeof(name), whole.typeof(name)
            self.assertEqual((ffi.sizeof(ours), ffi.alignof(ours)), (whole.sizeof(theirs), whole.alignof(theirs)), name)
            if name != "GhosttyPointS":
                self.assertEqual(layout(ffi, ours), layout(whole, theirs), name)

    def test_functions_take_and_return_the_same(self) -> None:
        for name in re.findall(r"(ghostty_\w+)\(", DECLARED):
            if name != "ghostty_terminal_grid_ref":  # see GhosttyPointS
                ours, theirs = ffi.typeof(getattr(lib, name)), whole.typeof(getattr(whole_lib, name))
                self.assertEqual(layout(ffi, ours), layout(whole, theirs), name)
