from __future__ import annotations

import re
from typing import Any

from msgspec.structs import replace
from twisted.internet.defer import CancelledError, Deferred, fail, succeed
from twisted.internet.task import Clock, deferLater
from twisted.trial.unittest import TestCase

from ironcurtain.codemode import diagnostics
from ironcurtain.codemode.model import CodeLimits, RunResult, Tool, ToolReply
from ironcurtain.codemode.monty import MontyInterpreter, MontyInterpreters
from ironcurtain.codemode.pool import close_pool
from ironcurtain.errors import SessionError

STRING = {"type": "string"}
READ = {"type": "object", "properties": {"path": STRING, "head": {"type": "number"}}, "required": ["path"]}
ODD = {"type": "object", "properties": {"class": STRING, "some-list": {"type": "array", "items": STRING}}}
TOOLS = [
    Tool("files", "read", "Read a file.", READ),
    Tool("files", "write", "Write a file.", READ),
    Tool("time", "get-now", "Tell the time.", ODD),
]
SMALL = CodeLimits(run_seconds=100.0, memory_bytes=20_000_000, calls=200, tool_result_bytes=1_000_000)
SHORT = replace(SMALL, run_seconds=2.0)
"""For programs that do not end by themselves."""

DAY = 86_400.0


class Backend:
    """Answers calls with ``reply``, or keeps them waiting while that is ``None``."""

    def __init__(self, reply: ToolReply | None = None) -> None:
        self.reply, self.calls = reply, list[tuple[str, str, dict[str, Any]]]()
        self.waiting, self.cancelled = list[Deferred[ToolReply]](), 0
        self.called = Deferred[None]()

    def __call__(self, server: str, tool: str, arguments: dict[str, Any]) -> Deferred[ToolReply]:
        self.calls.append((server, tool, arguments))
        if self.reply is not None:
            return succeed(self.reply)
        self.waiting.append(Deferred(self._cancel))
        self.called.callback(None)
        return self.waiting[-1]

    def _cancel(self, waiting: Deferred[ToolReply]) -> None:
        self.cancelled += 1


class InterpreterCase(TestCase):
    def setUp(self) -> None:
        self.clock = Clock()
        self.backend = Backend(ToolReply("contents"))
        self.addCleanup(lambda: Deferred.fromCoroutine(close_pool()))

    async def interpreter(self, limits: CodeLimits = SMALL, backend: Backend | None = None) -> MontyInterpreter:
        made = await MontyInterpreters(self.clock, limits)(TOOLS, backend or self.backend)
        self.addCleanup(lambda: Deferred.fromCoroutine(made.close()))
        return made

    def start(self, interpreter: MontyInterpreter, code: str) -> Deferred[RunResult]:
        return Deferred.fromCoroutine(interpreter.run(code))


def soon() -> Deferred[None]:
    """Fires a moment later, for what only another process can tell."""
    from twisted.internet import reactor

    return deferLater(reactor, 0.005)


class CallTests(InterpreterCase):
    async def test_a_tool_is_a_function_that_returns(self) -> None:
        interpreter = await self.interpreter()
        result = await interpreter.run(
            'text_of_it = files.read("a", head=3)\nprint("got", text_of_it)\ntext_of_it.upper()'
        )
        self.assertEqual(result, RunResult("got contents\n", "CONTENTS", None, False))
        self.assertEqual(self.backend.calls, [("files", "read", {"path": "a", "head": 3})])
        self.assertEqual((await interpreter.run("text_of_it")).value, "contents")

    async def test_a_program_waits_days_for_an_answer_and_its_clock_stands_still(self) -> None:
        backend = Backend()
        interpreter = await self.interpreter(backend=backend)
        running = self.start(interpreter, 'value = files.read("a")\nvalue + "!"')
        await backend.called
        self.clock.callLater(3 * DAY, backend.waiting[0].callback, ToolReply("late"))
        self.clock.advance(2 * DAY)
        self.assertNoResult(running)
        self.clock.advance(1 * DAY)
        self.assertEqual((await running).value, "late!")

    async def test_names_that_python_does_not_take_are_mapped(self) -> None:
        interpreter = await self.interpreter()
        result = await interpreter.run(
            'time_mcp.get_now(class_="x", some_list=("a", "b"))\nimport time\ntime.time() > 0'
        )
        self.assertEqual((result.value, result.error), ("True", None))
        self.assertEqual(self.backend.calls, [("time", "get-now", {"class": "x", "some-list": ["a", "b"]})])

    async def test_values_come_as_python_has_them(self) -> None:
        self.backend.reply = ToolReply({"a": [1, 2.5, None, True, "é\0"], "b": {}})
        interpreter = await self.interpreter()
        result = await interpreter.run('x = files.read("a")\n[x["a"][1] + 1, x["a"][4], x["b"]]')
        self.assertEqual(result.value, "[3.5, 'é\\x00', {}]")

    async def test_denials_and_failures_can_be_caught(self) -> None:
        interpreter = await self.interpreter()
        for reply, kind in [
            (ToolReply(None, "no!", True), "PermissionError"),
            (ToolReply(None, "no!"), "RuntimeError"),
        ]:
            self.backend.reply = reply
            caught = await interpreter.run(f'try:\n    files.read("a")\nexcept {kind} as e:\n    print("caught", e)')
            self.assertEqual((caught.output, caught.error), ("caught no!\n", None))
            uncaught = await interpreter.run('files.read("a")')
            self.assertIn(f"{kind}: no!", str(uncaught.error))

    async def test_a_call_that_breaks_is_logged_and_told_without_details(self) -> None:
        interpreter = await self.interpreter()
        interpreter._calls._call = lambda *call: fail(ZeroDivisionError("internal"))
        result = await interpreter.run('files.read("a")')
        self.assertIn("RuntimeError: the call failed inside IronCurtain", str(result.error))
        self.assertNotIn("internal", str(result.error))
        self.assertEqual(len(self.flushLoggedErrors(ZeroDivisionError)), 1)

    async def test_a_large_result_is_refused_and_the_variables_stay(self) -> None:
        interpreter = await self.interpreter()
        await interpreter.run("kept = 7")
        for value in ("x" * 200_000_000, ["x" * 2_000_000]):
            self.backend.reply = ToolReply(value)
            result = await interpreter.run('files.read("a")')
            self.assertIn("over the limit of 1000000; ask for a part", str(result.error))
        self.assertEqual((await interpreter.run("kept")).value, "7")

    async def test_the_library(self) -> None:
        interpreter = await self.interpreter()
        result = await interpreter.run(
            'print(text.diff("a\\n", "b\\n"))\n'
            'text.glob("*.py", ["x/a.py", "b"]), url.parse("http://h/p")["host"], tools.help()'
        )
        self.assertIn("['x/a.py'], 'h', 'files: 2 tools", str(result.value))
        self.assertIn("ValueError: names must be", str((await interpreter.run('text.glob("*", "x")')).error))
        self.assertEqual((await interpreter.run('text = 3\nimport text\ntext.glob("*", ["a"])')).value, "['a']")


class CheckTests(InterpreterCase):
    async def refused(self, wrong: str) -> str:
        """Run a right call and then something wrong; nothing may have been called."""
        interpreter = await self.interpreter()
        result = await interpreter.run(f'files.write("a")\n{wrong}')
        self.assertEqual(self.backend.calls, [])
        self.assertFalse(result.variables_lost)
        return str(result.error)

    async def test_a_wrong_tool(self) -> None:
        self.assertIn("`files` has no member `raed`. Did you mean read", await self.refused('files.raed("b")'))

    async def test_wrong_arguments(self) -> None:
        self.assertIn("It is files.read(path: str, head: float = ...)", await self.refused('files.read(pth="b")'))
        self.assertIn("It is files.read(", await self.refused("files.read()"))
        self.assertIn("Expected `str`", await self.refused("files.read(7)"))

    async def test_a_wrong_server_and_a_missing_module(self) -> None:
        self.assertIn("Did you mean files?", await self.refused('fils.read("b")'))
        self.assertIn("`textwrap`", await self.refused("import textwrap"))
        self.assertIn("`open`", await self.refused('open("/etc/passwd")'))

    async def test_unsupported_and_wrong_syntax(self) -> None:
        self.assertIn("yield", await self.refused("def f():\n    yield 1"))
        self.assertIn("class inheritance", await self.refused("class E(Exception):\n    pass"))
        self.assertIn("SyntaxError", await self.refused("x = ("))

    async def test_what_the_checker_cannot_see_is_checked_when_called(self) -> None:
        interpreter = await self.interpreter()
        self.assertIn("no argument 'pth'", str((await interpreter.run("exec('files.read(pth=1)')")).error))
        self.assertIn("holds a set", str((await interpreter.run("exec('files.read({1})')")).error))
        self.assertEqual(self.backend.calls, [])

    async def test_programs_that_only_the_checker_dislikes_are_run(self) -> None:
        interpreter = await self.interpreter()
        for code, value in [
            ('import re\nm = re.match("(a)b", "ab").group(1)\nm', "a"),
            ("m * 2", "aa"),
            ('words = "x y".split()\ntime_mcp.get_now(some_list=words)', "contents"),
            ("list(map(str, [1])), hasattr(3, 'x')", "(['1'], False)"),
            ("files = files\nx: int = 'a'\nx", "a"),
        ]:
            result = await interpreter.run(code)
            self.assertEqual((result.error, result.value), (None, value), code)

    async def test_the_declared_builtins_are_there(self) -> None:
        interpreter = await self.interpreter()
        for name in re.findall(r"(?:class|def) (\w+)", diagnostics.BUILTINS):
            self.assertIsNone((await interpreter.run(name)).error, name)

    async def test_names_of_a_program_that_failed_are_known_afterwards(self) -> None:
        interpreter = await self.interpreter()
        self.assertIn("ZeroDivisionError", str((await interpreter.run("kept = 5\nkept / 0")).error))
        self.assertEqual((await interpreter.run("kept")).value, "5")

    async def test_an_endless_program_is_refused(self) -> None:
        interpreter = await self.interpreter()
        self.assertIn("characters, over the limit", str((await interpreter.run("1;" * 200_000)).error))


class LimitTests(InterpreterCase):
    async def test_bombs_are_contained_and_the_next_program_runs(self) -> None:
        slow, fast = await self.interpreter(SHORT), await self.interpreter()
        for interpreter, bomb, reason in [
            (slow, "while True:\n    pass", "TimeoutError"),
            (slow, "try:\n    while True:\n        pass\nexcept TimeoutError:\n    pass", "TimeoutError"),
            (fast, '"x" * 10**9', "MemoryError"),
            (fast, "10 ** (10 ** 9)", "MemoryError"),
            (slow, "while True:\n    print('x' * 1000)", "TimeoutError"),
            (fast, "items = []\nwhile True:\n    items.append('x' * 1000)", "MemoryError"),
            (slow, "import time\ntime.sleep(1000)", "TimeoutError"),
            (fast, "for n in range(1000):\n    files.read(str(n))", "limit 200 exceeded"),
        ]:
            await interpreter.run("kept = 1")
            result = await interpreter.run(bomb)
            self.assertIn(reason, str(result.error), bomb)
            self.assertTrue(result.variables_lost, bomb)
            after = await interpreter.run("files.read('a')")
            self.assertEqual((after.value, after.error, after.variables_lost), ("contents", None, False), bomb)
            self.assertIn("`kept`", str((await interpreter.run("kept")).error))

    async def test_recursion_and_deep_source_cost_nothing_but_the_program(self) -> None:
        interpreter = await self.interpreter()
        await interpreter.run("kept = 1")
        for bomb in ("def f(n):\n    return f(n)\nf(0)", "(" * 5000 + ")" * 5000, "x = " + "-" * 20_000 + "1"):
            result = await interpreter.run(bomb)
            self.assertTrue(result.error)
            self.assertFalse(result.variables_lost)
        self.assertEqual((await interpreter.run("kept")).value, "1")

    async def test_output_and_values_keep_head_and_tail(self) -> None:
        interpreter = await self.interpreter()
        result = await interpreter.run("print('first')\nprint('x' * 3_000_000)\nprint('last')\n'y' * 1_000_000")
        for text in (result.output, str(result.value)):
            self.assertLess(len(text), SMALL.result_bytes + 100)
            self.assertIn("bytes left out", text)
        self.assertTrue(result.output.startswith("first\n") and result.output.endswith("last\n"))
        self.assertEqual(result.left_out, 3_000_012 + 1_000_000 - 2 * SMALL.result_bytes)
        self.assertGreater((await interpreter.run("raise ValueError('z' * 1_000_000)")).left_out, 0)
        self.assertEqual((await interpreter.run("'y'")).left_out, 0)

    async def test_values_that_cannot_be_written_down(self) -> None:
        interpreter = await self.interpreter()
        for code in ("items = []\nfor n in range(20_000):\n    items = [items]\nitems", "files.read", "lambda: 1"):
            result = await interpreter.run(code)
            self.assertEqual((result.error, result.variables_lost), (None, False))
            self.assertTrue(result.value)

    async def test_sleeping_takes_the_clock_that_was_given(self) -> None:
        interpreter = await self.interpreter()
        running = self.start(interpreter, "import time\ntime.sleep(5)\n'awake'")
        while not self.clock.getDelayedCalls():
            await soon()
        self.clock.advance(4.9)
        self.assertNoResult(running)
        self.clock.advance(0.1)
        self.assertEqual((await running).value, "awake")

    async def test_the_machine_is_out_of_reach(self) -> None:
        interpreter = await self.interpreter()
        for code in (
            "import os\nos.listdir('/')",
            "import os\nos.environ",
            "import os\nos.getenv('PATH')",
            "from pathlib import Path\nPath('/etc/passwd').read_text()",
            "from pathlib import Path\nPath('/tmp/x').write_text('x')",
            "exec('open(\"/etc/passwd\").read()')",
            "exec('import socket')",
            "exec('import subprocess')",
        ):
            self.assertTrue((await interpreter.run(code)).error, code)


class EndTests(InterpreterCase):
    async def test_cancelling_a_program_that_waits_withdraws_its_call(self) -> None:
        backend = Backend()
        interpreter = await self.interpreter(backend=backend)
        running = self.start(interpreter, 'files.read("a")')
        await backend.called
        running.cancel()
        await self.assertFailure(running, CancelledError)
        self.assertEqual(backend.cancelled, 1)
        backend.reply = ToolReply("again")
        after = await interpreter.run('files.read("a")')
        self.assertEqual((after.value, after.variables_lost), ("again", True))
        self.assertFalse((await interpreter.run("1")).variables_lost)

    async def test_cancelling_a_program_that_computes(self) -> None:
        interpreter = await self.interpreter(CodeLimits(run_seconds=30))
        running = self.start(interpreter, 'files.read("a")\nwhile True:\n    pass')
        while not self.backend.calls:
            await soon()
        running.cancel()
        await self.assertFailure(running, CancelledError)
        self.assertEqual((await interpreter.run("1 + 1")).value, "2")

    async def test_closing_ends_what_runs_and_is_harmless_twice(self) -> None:
        backend = Backend()
        interpreter = await self.interpreter(backend=backend)
        running = self.start(interpreter, 'files.read("a")')
        waiting = self.start(interpreter, "1")
        await backend.called
        await interpreter.close()
        await self.assertFailure(running, SessionError)
        await self.assertFailure(waiting, SessionError)
        self.assertEqual(backend.cancelled, 1)
        await interpreter.close()
        await self.assertFailure(self.start(interpreter, "1"), SessionError)

    async def test_programs_of_one_session_run_one_after_another(self) -> None:
        backend = Backend()
        interpreter = await self.interpreter(backend=backend)
        first = self.start(interpreter, 'a = files.read("a")')
        second = self.start(interpreter, "a + '2'")
        await backend.called
        self.assertNoResult(second)
        backend.waiting[0].callback(ToolReply("1"))
        self.assertEqual((await second).value, "12")
        await first

    async def test_two_sessions_share_nothing(self) -> None:
        other = Backend(ToolReply("of the other"))
        one, two = await self.interpreter(SHORT), await self.interpreter(backend=other)
        await one.run("mine = 1")
        self.assertIn("`mine`", str((await two.run("mine")).error))
        self.assertEqual((await two.run('files.read("x")')).value, "of the other")
        self.assertEqual(self.backend.calls, [])
        self.assertTrue((await one.run("while True: pass")).variables_lost)
        self.assertFalse((await two.run("1")).variables_lost)

    async def test_a_process_that_is_killed_is_replaced(self) -> None:
        import os
        import signal

        interpreter = await self.interpreter()
        assert interpreter._guest is not None
        process = interpreter._guest._session.worker_pid
        assert process is not None
        os.kill(process, signal.SIGKILL)
        while (result := await interpreter.run("1")).error is None:
            pass
        self.assertTrue(result.variables_lost)
        self.assertIn("interpreter process was lost", result.error)
        self.assertEqual((await interpreter.run("2")).value, "2")

    async def test_a_session_without_tools(self) -> None:
        interpreter = await MontyInterpreters(self.clock)((), self.backend)
        self.assertEqual((await interpreter.run("tools.help()")).value, "no tools")
        await interpreter.close()
