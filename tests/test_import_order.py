"""
Modules can be imported in any order.

Tests run most commands in processes that have imported much already (:mod:`tests.fork_server`). A command that imports
two modules which import each other would fail only in a process of its own.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from graphlib import CycleError, TopologicalSorter
from itertools import accumulate

from twisted.trial.unittest import SynchronousTestCase

from tests.test_rules import imports, module_name, modules, tree


def statements(among: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """:returns: the statements that run when a module of these is imported."""
    for statement in among:
        if isinstance(statement, ast.If) and "TYPE_CHECKING" in ast.unparse(statement.test):
            continue
        yield statement
        if isinstance(statement, ast.ClassDef | ast.ExceptHandler | ast.If | ast.Try | ast.With):
            yield from statements(ast.iter_child_nodes(statement))


def with_packages(name: str) -> list[str]:
    """:returns: a dotted name, and those of all packages round it."""
    return list(accumulate(name.split("."), "{}.{}".format))


class ImportOrderTests(SynchronousTestCase):
    def test_modules_import_each_other_in_no_circle(self) -> None:
        paths = {module_name(path): path for path in modules()}
        graph = {}
        for name, path in paths.items():
            named = {imported for _, imported in imports(statements(tree(path).body))}
            direct = {one if one in paths else one.rpartition(".")[0] for one in named}
            packages = {package for one in direct for package in with_packages(one)} - set(with_packages(name))
            graph[name] = (direct | packages) & paths.keys()
        try:
            TopologicalSorter(graph).prepare()
        except CycleError as e:
            self.fail(" imports ".join(reversed(e.args[1])))
