"""Secrets are taken out of what a model is told."""

from __future__ import annotations

from base64 import b64encode

from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.secrets.redaction import Redactor, Secret
from ironcurtain.shell.scrubbing import Scrubber, environment, is_secret_variable

CANARY = "canary-4f7d2b90ac1e-0123456789"


class ScrubberTests(SynchronousTestCase):
    """:class:`Scrubber`"""

    def test_values_of_secret_variables(self) -> None:
        scrubber = Scrubber(Redactor(), {"MY_API_KEY": CANARY, "EDITOR": "some-editor-of-mine", "DB_PASSWORD": "x"})
        for text in (CANARY, f"a{CANARY}b", b64encode(CANARY.encode()).decode()):
            self.assertNotIn(text, scrubber.text(f"key: {text}."))
        self.assertEqual(scrubber.text("x some-editor-of-mine"), "x some-editor-of-mine")

    def test_variables_that_were_set_since(self) -> None:
        scrubber = Scrubber(Redactor(), {})
        self.assertEqual(scrubber.text(CANARY), CANARY)
        scrubber.learn({"GH_TOKEN": CANARY})
        self.assertEqual(scrubber.text(CANARY), "[redacted]")

    def test_live_secrets_and_patterns(self) -> None:
        redactor = Redactor()
        scrubber = Scrubber(redactor, {}, ["customer-[0-9]+"])
        redactor.add(Secret(CANARY, "a key"))
        self.assertEqual(scrubber.text(f"{CANARY} of customer-17"), "[redacted] of [redacted]")

    def test_what_one_session_keeps_secret_is_not_redacted_elsewhere(self) -> None:
        redactor = Redactor()
        Scrubber(redactor, {"MY_API_KEY": CANARY})
        self.assertEqual(redactor.text(CANARY), CANARY)


class VariableTests(SynchronousTestCase):
    """Names of variables."""

    def test_names(self) -> None:
        for name in ("MY_API_KEY", "APIKEY", "aws_secret_access_key", "GH_TOKEN", "TOKEN", "PGPASSWORD", "CREDENTIALS"):
            self.assertTrue(is_secret_variable(name), name)
        for name in ("PATH", "HOME", "KEYBOARD", "MONKEY", "TOKENIZERS_PARALLELISM", "EDITOR"):
            self.assertFalse(is_secret_variable(name), name)

    def test_only_what_is_named_is_sent_and_never_a_secret(self) -> None:
        environ = {"PATH": "/bin", "GH_TOKEN": CANARY, "OTHER": "x"}
        self.assertEqual(
            environment({**environ, "LANG": None}, ("PATH", "GH_TOKEN", "MISSING", "LANG")), {"PATH": "/bin"}
        )
