"""``audit``, as processes."""

from __future__ import annotations

import json
import os

from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.session.verification import signed_heads
from tests.product import Product, until


class AuditTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.product = Product()
        self.addCleanup(lambda: self.assertEqual(self.product.close(), []))

    def test_a_log_is_signed_witnessed_and_verified(self) -> None:
        product, heads = self.product, self.product.person / "heads"
        product.home.mkdir(mode=0o700)
        (product.home / "config.toml").write_text(f'[audit]\nwitness = ["file:{heads}"]\n')
        done = product.run("start", "--backend", product.script({"text": "Four."}), "2 + 2?")
        self.assertEqual((done.returncode, done.stdout), (0, "Four.\n"), done.stderr)

        found = {finding["what"]: finding for finding in json.loads(product.run("doctor", "--json").stdout)}
        self.assertEqual(found[f"witness file:{heads}"]["state"], "ok")
        self.assertIn("sessions ", found["disk"]["detail"])
        key = product.run("audit", "key").stdout
        self.assertIn(product.run("audit", "key", "--id").stdout.strip(), found["audit logs"]["detail"])
        (public := product.person / "public.pem").write_text(key)
        self.assertIn("BEGIN PUBLIC KEY", key)
        verified = product.run("audit", "verify", "--key", str(public))
        self.assertEqual((verified.returncode, verified.stdout.splitlines()[-1]), (0, "Intact."), verified.stderr)
        self.assertIn("are as they were signed", verified.stdout)
        self.assertIn("The witness has the same head", verified.stdout)
        self.assertEqual(product.run("audit", "heads").stdout, heads.read_text().splitlines(keepends=True)[-1])

        (log,) = product.home.glob("sessions/*/audit.jsonl")
        lines = log.read_bytes().splitlines(keepends=True)
        log.write_bytes(b"".join(lines[:-4]))
        cut = product.run("audit", "verify")
        self.assertEqual((cut.returncode, cut.stdout.splitlines()[-1]), (1, "NOT intact."))
        self.assertIn("the log has no end", cut.stdout)
        self.assertIn("the log ends at", cut.stdout)
        report = json.loads(product.run("audit", "verify", "--json").stdout)
        self.assertFalse(report["intact"])
        log.write_text(written := '{"kind":"x\x1b]2;title\x07\x9b2J"}\n')  # as whoever can write the log might
        self.assertEqual(product.run("audit", "show", "--json").stdout, written)
        self.assertEqual(product.on_a_terminal("audit", "show", "--json"), repr(written)[1:-3] + "\n")
        os.replace(log, moved := product.person / "moved")
        log.symlink_to(moved)
        self.assertIn("symbolic link", product.run("audit", "verify").stdout)

    def test_the_newest_head_of_a_running_session_is_listed(self) -> None:
        process = self.product.start("start", "--backend", self.product.script({"text": "Four."}))
        assert process.stdin is not None
        process.stdin.write("2 + 2?\n")
        process.stdin.flush()
        until(process.stdout, "Four.")
        (listed,) = self.product.json("sessions")
        (log,) = self.product.home.glob("sessions/*/audit.jsonl")
        heads = [{"sequence": head.sequence, "digest": head.head, "final": False} for head in signed_heads(log)]
        self.assertIn(listed["head"], heads)
        process.communicate("/quit\n")


class CleanupCommandTests(SynchronousTestCase):
    def test_a_dry_run_and_a_real_one(self) -> None:
        product = Product()
        self.addCleanup(lambda: self.assertEqual(product.close(), []))
        done = product.run("start", "--backend", product.script({"text": "Four."}), "2 + 2?")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("No session is older", product.run("cleanup", "--older-than", "1d").stdout)
        (snapshot,) = product.home.glob("sessions/*/session.json")
        os.utime(snapshot, (1e9, 1e9))
        dry = product.run("cleanup", "--older-than", "1d")
        self.assertEqual(dry.returncode, 0, dry.stderr)
        self.assertIn("2001-09-09", dry.stdout)
        self.assertIn("Nothing was removed. With --yes: 1 session, ", dry.stdout)
        self.assertTrue(snapshot.with_name("history.jsonl").exists())
        self.assertEqual(product.json("cleanup", "--older-than", "1d", "--yes")["removed"], [1])
        self.assertEqual(
            sorted(path.name for path in snapshot.parent.iterdir()), ["audit.jsonl", "session.json", "session.lock"]
        )
        self.assertEqual(product.run("audit", "verify").returncode, 0)
        self.assertEqual(product.run("cleanup", "--older-than", "soon").returncode, 64)

    def test_a_start_prunes_if_told_so(self) -> None:
        product = Product()
        self.addCleanup(lambda: self.assertEqual(product.close(), []))
        script = product.script({"text": "Four."})
        self.assertEqual(product.run("start", "--backend", script, "2 + 2?").returncode, 0)
        (snapshot,) = product.home.glob("sessions/*/session.json")
        os.utime(snapshot, (1e9, 1e9))
        self.assertEqual(product.run("start", "--backend", script, "2 + 2?").returncode, 0)
        self.assertTrue(snapshot.with_name("sandbox").exists())
        product.environ["IRONCURTAIN_SESSION_PRUNE_ON_START"] = "true"
        self.assertEqual(product.run("start", "--backend", script, "2 + 2?").returncode, 0)
        self.assertFalse(snapshot.with_name("sandbox").exists())
        self.assertTrue(snapshot.with_name("audit.jsonl").exists())


class ReportCommandTests(SynchronousTestCase):
    def test_each_format(self) -> None:
        product = Product()
        self.addCleanup(lambda: self.assertEqual(product.close(), []))
        self.assertEqual(product.run("start", "--backend", product.script({"text": "4"}), "<b>2 + 2?").returncode, 0)
        text = product.run("report")
        self.assertEqual(text.returncode, 0, text.stderr)
        self.assertIn("audit log: intact. Records 1 to", text.stdout)
        (session,) = json.loads(product.run("report", "last", "--format", "json").stdout)
        self.assertEqual((session["number"], session["intact"], session["asked"][0]["message"]), (1, True, "<b>2 + 2?"))
        self.assertIn("&lt;b&gt;2 + 2?", product.run("report", "--format", "html", "--since", "1h").stdout)
        (snapshot,) = product.home.glob("sessions/*/session.json")
        os.utime(snapshot, (1e9, 1e9))
        self.assertTrue(product.run("report", "--since", "1h").stdout.startswith("0 sessions"))
