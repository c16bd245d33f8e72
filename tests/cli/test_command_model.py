"""The built-in agent with a command as its model, as processes."""

from __future__ import annotations

from tests.cli.cases import ProductCase

MODEL = """
if grep -A1 '^```result' | grep 42; then echo All done.
else printf '%s\\n' '```execute_code' 'print(6 * 7)' '```'; fi
"""


class CommandModelTests(ProductCase):
    def test_it_asks_for_tools_and_answers(self) -> None:
        script = self.product.person / "model"
        script.write_text(MODEL)
        done = self.product.run("start", "--backend", f"subprocess:sh {script}", "do it")
        self.assertEqual((done.returncode, done.stdout), (0, "42\nAll done.\n"), done.stderr)

    def test_why_it_failed_is_told(self) -> None:
        done = self.product.run("start", "--backend", "subprocess:sh -c 'echo no such model >&2; exit 1'", "do it")
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertIn("ended with status 1: no such model", done.stderr)
