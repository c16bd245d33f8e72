from __future__ import annotations

import base64
import json
from urllib.parse import quote

from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.audit.log import TEXT_LIMIT, AuditLog
from ironcurtain.secrets.redaction import TOO_DEEP, Redactor, Secret
from tests.audit.doubles import at_once, scratch

CREDENTIALS = {
    "anthropic": "sk-ant-api03-" + "aB3_x9-" * 12,
    "openai": "sk-proj-" + "Zk8QwErT" * 5,
    "github-fine": "github_pat_" + "11ABCDEFG0_" + "a1B2c3" * 8,
    "github": "ghp_" + "a1B2c3" * 6,
    "google": "AIza" + "SyA-b_c1D2" * 3 + "e3F4g",
    "jwt": "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk",
    "bearer": "Bearer abcdef0123456789ABCDEF",
    "slack": "xoxb-" + "123456789012-abcdefGHIJKL",
    "aws": "AKIA" + "IOSFODNN7EXAMPLE",
    "card": "4111 1111 1111 1111",
    "ssn": "078-05-1120",
    "pem": "-----BEGIN RSA PRIVATE KEY-----\nMIIEpAIBAAKCAQEA75iQ\n-----END RSA PRIVATE KEY-----",
    "url": "postgres://admin:hunter2secret@db.example.com/x",
    "assigned": "DATABASE_PASSWORD=correcthorsebattery",
}
"""One of each class, made up."""

TELLING = {
    "pem": "MIIEpAIBAAKCAQEA75iQ",
    "url": "hunter2secret",
    "assigned": "correcthorsebattery",
    "bearer": "abcdef0123",
}
"""What must not be seen, where it is not the whole of it."""

LIVE = 'Gx7/+="line\nq\u00e9-0123456789'
"""A live secret with characters that each form writes differently."""


class RedactionTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.path = scratch(self) / "audit.jsonl"
        redactor = Redactor([Secret(LIVE)])
        self.log = AuditLog(self.path, "s", redactor, Clock(), lambda: 1.5e9, at_once)

    def written(self) -> str:
        """All texts in the file, as a reader of JSON sees them, and the file itself."""
        data = self.path.read_text()
        return data + "".join(str(json.loads(line)) for line in data.splitlines())

    def test_a_secret_is_not_found_at_any_level_of_a_record(self) -> None:
        value: object = LIVE
        for level in range(900):
            value = [LIVE, value] if level % 2 else {LIVE: LIVE, "a": value}
        self.log.append("call", arguments=value)
        self.assertNotIn(LIVE, written := self.written())
        self.assertNotIn(json.dumps(LIVE)[1:-1], written)
        self.assertIn(TOO_DEEP, written)

    def test_every_class_of_credential_anywhere_in_a_record(self) -> None:
        for name, credential in CREDENTIALS.items():
            self.log.append(
                "call",
                arguments={
                    "text": credential,
                    "nested": [{"inside": f"before {credential} after"}],
                    f"key {credential} key": 1,
                    "quoted": json.dumps({"x": credential}),
                },
                reason=f"because of {credential}",
            )
            written = self.written()
            self.assertNotIn(TELLING.get(name, credential), written, name)
            self.assertIn("redacted", written.splitlines()[-1], name)

    def test_a_card_given_as_a_number(self) -> None:
        self.log.append("call", arguments={"card": 4111111111111111, "size": 4111111111111112})
        self.assertNotIn("4111111111111111", self.written())
        self.assertIn("4111111111111112", self.written())

    def test_what_a_name_calls_secret(self) -> None:
        self.log.append("call", arguments={"password": "short pw", "api_key": "notakindweknow", "tokens": 12})
        self.assertNotIn("short pw", self.written())
        self.assertNotIn("notakindweknow", self.written())

    def test_a_live_secret_in_every_form(self) -> None:
        raw = LIVE.encode()
        forms = {
            "plain": LIVE,
            "base64": base64.b64encode(raw).decode(),
            "base64 of a text around it": base64.b64encode(b"user:" + raw + b"!").decode(),
            "base64 for URLs": base64.urlsafe_b64encode(b"x" + raw).decode(),
            "URL": quote(LIVE, safe=""),
            "JSON": json.dumps(LIVE)[1:-1],
            "JSON, not ASCII": json.dumps(LIVE, ensure_ascii=False)[1:-1],
            "hex": raw.hex(),
        }
        for name, form in forms.items():
            before = len(self.path.read_bytes())
            self.log.append("call", arguments={"text": f"<{form}>", f"key {form}": 1})
            line = self.path.read_bytes()[before:].decode()
            for seen in (line, str(json.loads(line))):
                self.assertNotIn(form[4:-4], seen, name)
            self.assertIn("redacted", line, name)

    def test_a_secret_across_the_cut_is_not_cut_in_two(self) -> None:
        for credential in (CREDENTIALS["anthropic"], CREDENTIALS["github"], LIVE):
            for kept in (*range(0, len(credential), 9), len(credential)):
                text = "." * (TEXT_LIMIT - kept - 1) + " " + credential + " " + "." * 99
                before = len(self.path.read_bytes())
                self.log.append("call", arguments={"text": text})
                shown = json.loads(self.path.read_bytes()[before:])["arguments"]["text"]
                self.assertNotIn(credential[:8], shown, f"{kept} characters before the cut")

    def test_a_secret_behind_the_cut_does_not_slip_before_it(self) -> None:
        """Redacting makes a text shorter: what lay behind the cut must not move up, half recognised."""
        pem = "-----BEGIN RSA PRIVATE KEY-----\n" + "A" * 6000 + "\n-----END RSA PRIVATE KEY-----\n"
        for shift in range(0, 120, 5):
            start = TEXT_LIMIT + 4096 - shift
            text = (pem + "." * start)[:start] + LIVE + "." * 100
            before = len(self.path.read_bytes())
            self.log.append("call", arguments={"text": text})
            shown = json.loads(self.path.read_bytes()[before:])["arguments"]["text"]
            self.assertNotIn(LIVE[:6], shown, f"shift {shift}")
