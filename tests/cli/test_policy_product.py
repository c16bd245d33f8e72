"""The installed product: a policy with memory, a session that goes on, and what the commands say about it."""

from __future__ import annotations

from tests.cli.cases import ProductCase

POLICY = """\
version = 1

[[rules]]
name = "one-file"
if = { server = ["filesystem"], tool = ["write_file"], rate = { calls = 1, seconds = 86400 } }
then = "deny"
reason = "one file a day is enough"
"""

WRITE = {"code": "try:\n    filesystem.write_file('{}', 'x')\nexcept PermissionError as e:\n    print(e)"}
DONE = {"text": "All done."}


def write(name: str) -> dict[str, str]:
    """:returns: a turn that writes a file."""
    return {"code": WRITE["code"].format(name)}


class MemoryTests(ProductCase):
    """One session, resumed once."""

    def test_what_happened_before_counts(self) -> None:
        policy = self.product.person / "policy.toml"
        policy.write_text(POLICY)
        backend = self.product.script(write("a"), DONE)
        done = self.product.run("start", "--policy", str(policy), "--backend", backend, "do it")
        self.assertEqual(done.returncode, 0, done.stderr)
        backend = self.product.script(write("a"), DONE, write("b"), DONE)  # the model remembers its earlier answers
        done = self.product.run("start", "--resume", "last", "--backend", backend, "go on")
        self.assertEqual(done.returncode, 0, done.stderr)
        calls = [record for record in self.product.audit() if record["kind"] == "call"]
        self.assertEqual([(c["decision"], c["rule"]) for c in calls][-1], ("deny", "one-file"))
        self.assertEqual([len(c["creates"]) for c in calls if c["tool"] == "write_file"], [1, 1])

        explain = ("policy", "explain", "--policy", str(policy), "filesystem.write_file", "path=c")
        self.assertEqual(self.product.json(*explain)["decision"], "allow")
        explained = self.product.run(*explain, "--session", "1")
        self.assertIn("one-file [write-path]: deny (1 call within 86400 s)", explained.stdout, explained.stderr)

        replayed = self.product.run("policy", "replay", "--policy", str(policy))
        self.assertEqual((replayed.returncode, replayed.stderr), (0, ""), replayed.stdout)
        replayed = self.product.run("policy", "replay")
        self.assertIn("deny by one-file  allow by structural-sandbox-allow", replayed.stdout)
        self.assertEqual(replayed.returncode, 1)


class RefusalTests(ProductCase):
    """Policies that ``policy check`` refuses."""

    def test_what_the_check_refuses_starts_nowhere(self) -> None:
        wanted = 'if = { tool = ["read_file"] }'
        rule = f'[[rules]]\nname = "r"\nthen = "deny"\n{wanted}\n'
        deny = f"{rule.replace(wanted, 'if = {}')}"
        backend, policy = self.product.script(DONE), self.product.home / "policy.toml"
        self.product.home.mkdir(mode=0o700, exist_ok=True)
        for text, line, why in (
            ('protected = [\n"~/a",\n"~/secrets/*"]\n', 1, "no other wildcards"),
            (
                rule.replace(wanted, 'if = { paths = { roles = ["read-path"], within = "$HOMES" } }'),
                4,
                "variable $HOMES",
            ),
            (f"{deny}{deny}", 5, "another rule has this name"),
            (f'{deny}[approval.filesystem]\ndeny = ["~/{{a,b}}"]\n', 6, "braces are not expanded"),
        ):
            policy.write_text(text)
            checked = self.product.run("policy", "check")
            self.assertIn(why, checked.stdout + checked.stderr)
            self.assertIn(checked.returncode, (1, 78), checked.stdout)
            # One reader serves every command that begins a session.
            for words in (("start", "--backend", backend, "do it"), *([("mcp-proxy",)] if line == 1 else ())):
                done = self.product.run(*words)
                self.assertEqual(done.returncode, 78, (text, done.stderr))
                self.assertIn(f"{policy}:{line}: ", done.stderr)
                self.assertIn(why, done.stderr)
        self.assertEqual(list(self.product.home.glob("sessions/*")), [])
