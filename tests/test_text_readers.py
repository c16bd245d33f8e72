"""A rule of the source: files that people write are decoded in one module, so that all are read alike."""

from __future__ import annotations

import ast
import re

from twisted.trial.unittest import SynchronousTestCase

from tests.test_rules import PACKAGE, modules, nodes, short

OURS = re.compile(r"/proc\b|__file__|resources\.files|\b[A-Z_]{3,}\b")
"""Expressions of files that no person writes: of the kernel, or of this package."""

READING = {
    "cli/__init__.py": "standard streams",
    "cli/demo.py": "what its own agent writes",
    "cli/doctor_watchers.py": "the kernel's",
    "cli/mcp_trial.py": "a log",
    "cli/review.py": "a record",
    "cli/shell_above.py": "a record",
    "container/probe.py": "the kernel's",
    "container_agent/kind.py": "a record",
    "container_agent/project_setup.py": "a record",
    "fleet/lacking.py": "a record",
    "fleet/taken.py": "a record",
    "fleet/task_files.py": "a record",
    "fleet/trial_server.py": "a log",
    "home/parsing.py": "parses what is decoded",
    "loop/state.py": "a record",
    "policy_compiler/compiler.py": "a record",
    "process/identity.py": "the kernel's",
    "project/self_running.py": "data of this package",
    "project/snapshot.py": "a record",
    "prove/sandboxes.py": "source of this package",
    "sandbox/cgroups.py": "the kernel's",
    "sandbox/hold.py": "the kernel's",
    "sandbox/landlock/reach.py": "the kernel's",
    "sandbox/obstacles.py": "the kernel's",
    "secrets/rules.py": "data of this package",
    "session/cleanup.py": "a record",
    "session/elsewhere.py": "a record",
    "session/verification.py": "a record",
}
"""Modules that read or parse files without ``text.decoding``, with what they read that no person writes."""

PARSERS = frozenset(("configparser.ConfigParser", "json.load", "tomllib.load", "tomllib.loads", "yaml.safe_load"))


class TextTests(SynchronousTestCase):
    """Files that people write come from editors of all systems, with byte order marks and in UTF-16."""

    def test_one_module_decodes_the_files_of_people(self) -> None:
        readers = {
            str(path.relative_to(PACKAGE)): short(path, node)
            for path in modules()
            for node in nodes(path)
            if isinstance(node, ast.Call) and _reads_text(node)
        }
        unknown = [place for name, place in readers.items() if name not in READING]
        self.assertEqual(unknown, [], "decode it with ironcurtain.text.decoding, or home.layout.read_configuration")
        self.assertEqual(sorted(READING.keys() - readers.keys()), [], "drop it from the list")


def _reads_text(call: ast.Call) -> bool:
    """:returns: whether a call reads a file as text, or parses one as it is, which a person may have written."""
    name = ast.unparse(call.func)
    if name == "open":
        modes = [each.value for each in call.args[1:] if isinstance(each, ast.Constant)]
        return not any(isinstance(mode, str) and set(mode) & set("abwx") for mode in modes)
    if name in PARSERS:
        return True
    if name.endswith("json.decode"):
        inner = call.args[0]
        return isinstance(inner, ast.Call) and ast.unparse(inner.func).endswith(".read_bytes")
    is_path = name.endswith(".read_text") and all(isinstance(each, ast.Constant) for each in call.args)
    return is_path and OURS.search(name) is None
