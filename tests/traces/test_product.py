"""What a collector gets of the installed product."""

from __future__ import annotations

from tests.cli.cases import ProductCase
from tests.product import until
from tests.traces.collector import Collector, attributes

READ = {"code": "print(filesystem.read_text_file('~/secret.txt'))"}


class ExportTests(ProductCase):
    def configure(self, endpoint: str) -> None:
        """Have spans exported."""
        self.product.home.mkdir(mode=0o700)
        (self.product.home / "config.toml").write_text(f'[telemetry]\notlp_endpoint = "{endpoint}"\n')

    def test_a_message_is_a_trace_with_its_requests_calls_and_approvals(self) -> None:
        collector = Collector()
        self.addCleanup(collector.stop)
        self.configure(collector.url)
        process = self.product.start("start", "--backend", self.product.script(READ, {"text": "It is far."}))
        assert process.stdin is not None
        process.stdin.write("read it\n")
        process.stdin.flush()
        until(process.stderr, "/approve 1")
        _, err = process.communicate("/approve 1\n/quit\n")
        self.assertEqual(process.returncode, 0, err)
        named = {span["name"]: span for span in collector.spans}
        names = sorted(span["name"] for span in collector.spans)
        self.assertEqual(names, ["approval", "message", "model request", "model request", "tool call"], err)
        self.assertEqual(len({span["traceId"] for span in collector.spans}), 1)
        message, call, approval = named["message"], named["tool call"], named["approval"]
        self.assertNotIn("parentSpanId", message)
        self.assertEqual({call["parentSpanId"], named["model request"]["parentSpanId"]}, {message["spanId"]})
        self.assertEqual(approval["parentSpanId"], call["spanId"])
        found = attributes(call)
        self.assertEqual((found["ironcurtain.server"], found["gen_ai.tool.name"]), ("filesystem", "read_text_file"))
        self.assertEqual((found["ironcurtain.decision"], found["ironcurtain.approval"]), ("escalate", "approved"))
        self.assertEqual(attributes(approval)["ironcurtain.outcome"], "approved")
        for text in ("secret", "read it", "It is far", "the moon", str(self.product.person)):
            self.assertNotIn(text, "".join(collector.bodies))

    def test_a_collector_that_cannot_be_reached_is_no_failure(self) -> None:
        self.configure("http://127.0.0.1:9")
        done = self.product.run("start", "--backend", self.product.script({"text": "Hello."}), "hi")
        self.assertEqual((done.returncode, done.stdout), (0, "Hello.\n"), done.stderr)
        self.assertNotIn("Traceback", done.stderr)
