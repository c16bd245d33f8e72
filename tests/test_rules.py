"""Rules of the source that no other tool can check, read from the syntax trees."""

from __future__ import annotations

import ast
import configparser
import re
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

TOP = Path(__file__).parent.parent
PACKAGE = TOP / "ironcurtain"

LONGEST_MODULE = 400
"""Lines; a longer module does more than one thing."""

MOST_ATTRIBUTES = 12
"""Of an instance; a class with more of them is two classes."""

KNOWS_THE_REACTOR = ("tap.py", "assembly.py", "cli/")
"""The only places, below the package, that may name the one reactor of the process, and only inside functions."""

CROSSES = "asyncio_bridge.py"
"""The only module in which asyncio and Deferreds meet."""

CROSSINGS = frozenset(("asFuture", "create_task", "ensure_future", "fromFuture"))
"""What starts a task or turns a Deferred into a future, and the other way round."""

FORBIDDEN_NAMES = frozenset(("ensureDeferred", "inlineCallbacks", "returnValue"))

# Put together from pieces, or this file would hold them itself.
FORBIDDEN_TEXT = [re.compile(rf"(?<![\w.~>-])/{word}/") for word in ("wor" + "k", "roo" + "t")]

TEXT_SUFFIXES = frozenset(
    (
        "",
        ".cfg",
        ".in",
        ".ini",
        ".json",
        ".jsonl",
        ".md",
        ".py",
        ".rst",
        ".service",
        ".sh",
        ".toml",
        ".txt",
        ".yaml",
        ".yml",
    )
)

Function = ast.FunctionDef | ast.AsyncFunctionDef


def modules() -> list[Path]:
    """:returns: every module of the package."""
    return sorted(path for path in PACKAGE.rglob("*.py") if "data" not in path.relative_to(PACKAGE).parts)


@cache
def tree(path: Path) -> ast.Module:
    """:returns: the syntax tree of a file."""
    return ast.parse(path.read_text(), str(path))


def short(path: Path, node: ast.AST | None = None) -> str:
    """:returns: a path, with the line of a node, for messages."""
    line = getattr(node, "lineno", None)
    return str(path.relative_to(TOP)) if line is None else f"{path.relative_to(TOP)}:{line}"


def module_name(path: Path) -> str:
    """:returns: the dotted name of a file of the package."""
    parts = path.relative_to(TOP).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@cache
def nodes(path: Path) -> tuple[ast.AST, ...]:
    """:returns: all nodes of a file's tree, which most rules look at."""
    return tuple(ast.walk(tree(path)))


def imports(among: Iterable[ast.AST]) -> Iterator[tuple[ast.stmt, str]]:
    """:returns: each import among nodes, with the dotted name of what is imported."""
    for statement in among:
        if isinstance(statement, ast.Import):
            yield from ((statement, alias.name) for alias in statement.names)
        elif isinstance(statement, ast.ImportFrom):
            yield from ((statement, f"{statement.module}.{alias.name}") for alias in statement.names)


def outside_functions(node: ast.AST) -> Iterator[ast.AST]:
    """:returns: the nodes that run when the module is imported."""
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, Function | ast.Lambda):
            yield child
            yield from outside_functions(child)


def public_definitions(path: Path) -> Iterator[tuple[str, ast.AST, str | None]]:
    """:returns: the module and each public class and function at its top level: name, node, docstring."""
    module = tree(path)
    if module.body:
        yield "module", module, ast.get_docstring(module)
    for node in module.body:
        if isinstance(node, ast.ClassDef | Function) and not node.name.startswith("_"):
            yield node.name, node, ast.get_docstring(node)


def attributes(cls: ast.ClassDef) -> set[str]:
    """:returns: what a class assigns to ``self``."""
    return {
        node.attr
        for node in ast.walk(cls)
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and ast.unparse(node.value) == "self"
    }


class ReactorTests(SynchronousTestCase):
    """The reactor is an argument; only the outermost modules know the one of the process."""

    def test_only_the_outermost_modules_import_it(self) -> None:
        wrong = [
            short(path, statement)
            for path in modules()
            for statement, name in imports(nodes(path))
            if name.startswith("twisted.internet.reactor")
            and not str(path.relative_to(PACKAGE)).startswith(KNOWS_THE_REACTOR)
        ]
        self.assertEqual(wrong, [])

    def test_they_import_it_inside_functions(self) -> None:
        wrong = [
            short(path, node)
            for path in modules()
            for node in outside_functions(tree(path))
            if isinstance(node, ast.Import | ast.ImportFrom)
            for _, name in imports(ast.walk(node))
            if name.startswith("twisted.internet.reactor")
        ]
        self.assertEqual(wrong, [])

    def test_one_module_joins_the_two_worlds(self) -> None:
        """A task that nobody holds can vanish, and a coroutine that awaits the wrong kind hangs."""
        wrong = [
            f"{short(path, node)} {node.attr}"
            for path in modules()
            for node in nodes(path)
            if isinstance(node, ast.Attribute) and node.attr in CROSSINGS and path.name != CROSSES
        ]
        self.assertEqual(wrong, [], "use ironcurtain.services.asyncio_bridge")


class SourceTests(SynchronousTestCase):
    """Size, docstrings, and constructs that this project does without."""

    def test_modules_are_short(self) -> None:
        sources = modules() + sorted((TOP / "tests").rglob("*.py"))
        lengths = {short(path): len(path.read_text().splitlines()) for path in sources}
        self.assertEqual({path: lines for path, lines in lengths.items() if lines > LONGEST_MODULE}, {})

    def test_classes_have_few_attributes(self) -> None:
        """Those in :data:`MANY_ATTRIBUTES` may not grow, and leave the list once they are split."""
        counted = {
            f"{module_name(path)}.{node.name}": len(attributes(node))
            for path in modules()
            for node in nodes(path)
            if isinstance(node, ast.ClassDef)
        }
        wrong = {name: count for name, count in counted.items() if count > MANY_ATTRIBUTES.get(name, MOST_ATTRIBUTES)}
        self.assertEqual(wrong, {}, "split it by state")
        split = [name for name in MANY_ATTRIBUTES if counted.get(name, 0) <= MOST_ATTRIBUTES]
        self.assertEqual(split, [], "drop it from the list")

    def test_structs_and_dataclasses_have_fields_of_their_own_kind(self) -> None:
        """A field of the other kind would be taken for the default itself."""
        for path in modules():
            for cls in nodes(path):
                if not isinstance(cls, ast.ClassDef):
                    continue
                wrong = (
                    "msgspec.field("
                    if any("dataclass" in ast.unparse(each) for each in cls.decorator_list)
                    else "field("
                )
                values = [
                    ast.unparse(each.value) for each in cls.body if isinstance(each, ast.AnnAssign) and each.value
                ]
                self.assertFalse([value for value in values if value.startswith(wrong)], short(path, cls))

    def test_public_names_have_docstrings(self) -> None:
        wrong = [
            f"{short(path, node)} {name}"
            for path in modules()
            for name, node, text in public_definitions(path)
            if not text
        ]
        self.assertEqual(wrong, [])

    def test_coroutines_are_the_only_asynchronous_style(self) -> None:
        wrong = [
            f"{short(path, statement)} {name}"
            for path in modules()
            for statement, name in imports(nodes(path))
            if name.rpartition(".")[2] in FORBIDDEN_NAMES
        ]
        self.assertEqual(wrong, [])

    def test_nothing_of_ours_is_mocked(self) -> None:
        named = [path for path in sorted((TOP / "tests").rglob("*.py")) if "mock" in path.read_text()]
        wrong = []
        for path in named:
            if any(name.startswith(("unittest.mock", "mock.")) for _, name in imports(nodes(path))):
                wrong.append(short(path))
        self.assertEqual(wrong, [])


SEARCHING = {
    "cli/doctor_keys.py": "runs nothing",
    "container_agent/bubblewrapped/programs.py": "a sandbox's PATH",
    "mcp_proxy/launch.py": "an absolute path",
    "process/own_programs.py": "what a shell of the user finds",
    "sandbox/installation.py": "what sandboxes can read",
}
"""Modules that look for programs without ``process.search_path``, with the reason."""


class ProgramTests(SynchronousTestCase):
    """Programs of this machine are looked for where no agent writes."""

    def test_one_module_looks_for_programs(self) -> None:
        wrong = []
        for path in modules():
            for node in nodes(path):
                named = ast.unparse(node) if isinstance(node, ast.Attribute) else ""
                if named == "shutil.which" and not any(str(path).endswith(f"ironcurtain/{each}") for each in SEARCHING):
                    wrong.append(short(path, node))
        self.assertEqual(wrong, [])


MANY_ATTRIBUTES = {
    "ironcurtain.agents.streams.acp.AcpDialogue": 14,
    "ironcurtain.agents.streams.codex.CodexDialogue": 17,
    "ironcurtain.assembly.Application": 16,
    "ironcurtain.audit.witness._Place": 13,
    "ironcurtain.builtin_agent.agent.BuiltinAgent": 19,
    "ironcurtain.cli.shell_pipe.PipeFrontEnd": 13,
    "ironcurtain.container_agent.program.AgentProgram": 13,
    "ironcurtain.container_agent.proxies.Proxies": 13,
    "ironcurtain.container_agent.screen.ScreenAgent": 13,
    "ironcurtain.escalation.queue.EscalationQueue": 14,
    "ironcurtain.llm.http_provider.HttpModelClient": 13,
    "ironcurtain.loop.iteration.IterationMonitor": 13,
    "ironcurtain.mcp_proxy.admission.CallAdmission": 14,
    "ironcurtain.mcp_proxy.channel.Child": 16,
    "ironcurtain.mcp_proxy.connection.AgentConnection": 15,
    "ironcurtain.mcp_proxy.http_channel.HttpChannel": 17,
    "ironcurtain.mcp_proxy.link.Link": 14,
    "ironcurtain.mcp_proxy.network_gate.NetworkGate": 15,
    "ironcurtain.mcp_proxy.proxy.McpProxy": 17,
    "ironcurtain.mcp_proxy.restarting.RestartingBackend": 15,
    "ironcurtain.mitm_proxy.answer.AnswerRelay": 13,
    "ironcurtain.mitm_proxy.exchange.Exchange": 18,
    "ironcurtain.mitm_proxy.open_hosts.OpenHosts": 14,
    "ironcurtain.mitm_proxy.proxy.MitmProxy": 20,
    "ironcurtain.mitm_proxy.tunnel.Tunnel": 18,
    "ironcurtain.policy.engine.PolicyEngine": 16,
    "ironcurtain.policy.judgement.Judgement": 15,
    "ironcurtain.prove.outside.Outside": 15,
    "ironcurtain.session.snapshots.WorkspaceSnapshots": 13,
    "ironcurtain.shell.execution.CommandRunner": 14,
    "ironcurtain.shell.plan.PlanRun": 15,
    "ironcurtain.ssh.channel.SessionChannel": 13,
    "ironcurtain.ssh.transport.SshTransport": 16,
    "ironcurtain.terminal.hub.Hub": 18,
    "ironcurtain.terminal.scan.Scanner": 13,
    "ironcurtain.watchers.audio_trigger.AudioTrigger": 16,
    "ironcurtain.watchers.screen_trigger.ScreenTrigger": 14,
}
"""Classes that are still to be split, with the most attributes that they may have; none is added here."""

PRIVATE_BY_NEED = {
    "os._exit": "public: the documentation has it",
}
"""What begins with an underscore and is used all the same, with the reason."""


class PublicTests(SynchronousTestCase):
    """What other people's libraries keep to themselves is not used, and their objects' methods are not replaced."""

    def test_no_private_name_of_a_library_is_used(self) -> None:
        everywhere = {name for path in modules() for name in _own_names(path)}
        wrong = []
        for path in modules():
            here = _own_names(path)
            for node in nodes(path):
                if isinstance(node, ast.Attribute) and _is_private(node.attr):
                    whose = ast.unparse(node.value)
                    known = everywhere if whose in ("self", "cls") else here
                    if node.attr not in known and not {whose, ast.unparse(node)} & PRIVATE_BY_NEED.keys():
                        wrong.append(f"{short(path, node)} {ast.unparse(node)}")
                elif isinstance(node, ast.ImportFrom):
                    names = [*(node.module or "").split("."), *(alias.name for alias in node.names)]
                    wrong += [f"{short(path, node)} {name}" for name in names if _is_private(name)]
        self.assertEqual(wrong, [])

    def test_no_method_of_another_object_is_replaced(self) -> None:
        callbacks = {"dataReceived", "connectionLost", "connectionMade", "doRead", "doWrite", "makeConnection"}
        wrong = [
            f"{short(path, node)} {ast.unparse(node)}"
            for path in modules()
            for node in nodes(path)
            if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and node.attr in callbacks
        ]
        self.assertEqual(wrong, [])


def _is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")


@cache
def _own_names(path: Path) -> set[str]:
    """:returns: what a module defines or assigns, attributes too."""
    names = set[str]()
    for node in nodes(path):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            if ast.unparse(node.value) in ("self", "cls"):
                names.add(node.attr)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
    return names


class ContractTests(SynchronousTestCase):
    """The contracts in setup.cfg."""

    def test_every_module_that_a_contract_names_is_there(self) -> None:
        """A name that is wrong permits nothing, or forbids nothing, and nobody is told."""
        config = configparser.ConfigParser(interpolation=None)
        config.read(TOP / "setup.cfg")
        there = {module_name(path) for path in modules()}
        named = {
            name
            for section in config.sections()
            if section.startswith("importlinter:contract:")
            for value in config[section].values()
            for name in re.findall(r"\bironcurtain(?:\.\w+)+", value)
        }
        self.assertEqual(sorted(named - there), [])


class TreeTests(SynchronousTestCase):
    """What lies where."""

    def test_the_plugin_imports_nothing_of_ours(self) -> None:
        plugin = TOP / "twisted" / "plugins" / "ironcurtain_plugin.py"
        self.assertEqual([name for _, name in imports(nodes(plugin)) if name.startswith("ironcurtain")], [])

    def test_twisted_stays_importable(self) -> None:
        """A package file there would hide Twisted itself, or every plugin."""
        self.assertEqual(list((TOP / "twisted").rglob("__init__.py")), [])

    def test_tests_are_no_packages(self) -> None:
        self.assertEqual(list((TOP / "tests").rglob("__init__.py")), [])

    def test_no_file_names_the_place_where_it_was_written(self) -> None:
        wrong = [
            f"{short(path)}:{text.count(chr(10), 0, found.start()) + 1}"
            for path in _texts()
            for text in (path.read_text(errors="replace"),)
            for pattern in FORBIDDEN_TEXT
            for found in pattern.finditer(text)
        ]
        self.assertEqual(wrong, [])


def _texts() -> Iterator[Path]:
    """:returns: the text files of the source, and none that building or testing made."""
    for entry in sorted(TOP.iterdir()):
        if entry.is_file() and entry.name != ".git":  # of a linked worktree
            yield entry
    for name in (".ci", "benchmarks", "docs", "images", "ironcurtain", "tests", "twisted"):
        for path in sorted((TOP / name).rglob("*")):
            made = {"_build", "__pycache__", "node_modules"} & set(path.parts)
            if path.is_file() and path.suffix in TEXT_SUFFIXES and not made and path.name != "dropin.cache":
                yield path
