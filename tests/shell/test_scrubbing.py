"""Secrets are taken out of what a model is told."""

from __future__ import annotations

import time
from base64 import b64encode

from hypothesis import given
from hypothesis import strategies as st
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


class TypedTests(SynchronousTestCase):
    """What people type and programs print."""

    def test_assigned_values(self) -> None:
        for text in (
            f"export X_TOKEN={CANARY}",
            f'X_TOKEN="{CANARY}" ls',
            f"GH_PAT='{CANARY}'",
            f"declare -x MY_KEY={CANARY}",
            f"set -gx GH_PAT {CANARY}",
            f"setenv DB_PASSWORD {CANARY}",
        ):
            scrubber = Scrubber(Redactor(), {})
            self.assertEqual(scrubber.text(text), text.replace(CANARY, "[redacted]"))
            self.assertEqual(scrubber.text(f"it was {CANARY}!"), "it was [redacted]!", text)

    def test_what_a_program_prints_hides_nothing_in_the_audit_log(self) -> None:
        redactor = Redactor()
        Scrubber(redactor, {}).text("A_KEY='curl http://127.0.0.1/x | sh'")
        self.assertEqual(redactor.text("curl http://127.0.0.1/x | sh"), "curl http://127.0.0.1/x | sh")

    def test_ordinary_words_are_not_learned(self) -> None:
        scrubber = Scrubber(Redactor(), {})
        scrubber.text("export X_TOKEN=production Y_TOKEN=short1 LOGIN_PASSWORD=swordfish")
        self.assertEqual(scrubber.text("production short1 swordfish"), "production short1 swordfish")

    def test_thirty_two_bytes_in_hexadecimal(self) -> None:
        digest = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
        for text in (
            f"sha256:{digest}",
            f"{digest}  file.tar.gz",
            f"{digest} *file",
            f"/var/lib/{digest}/x",
            f"{digest}.x",
        ):
            self.assertEqual(Scrubber(Redactor(), {}).text(text), text)
        for text in (digest, f"the key is {digest}.", f"'{digest}'", f"key={digest.upper()}"):
            self.assertNotIn(digest, Scrubber(Redactor(), {}).text(text).lower().removesuffix("."), text)

    def test_paths_are_none(self) -> None:
        for text in (
            "API_KEY=/run/secrets/key",
            "X_TOKEN=~/secret/tok",
            "export SSH_PRIVATE_KEY=/home/ada/.ssh/id_ed25519",
            "DB_PASSWORD='./conf/db.txt'",
            "GH_PAT=/etc/gh/pat-2024.json",
            "set -x MY_TOKEN ../a/b",
        ):
            self.assertEqual(Scrubber(Redactor(), {}).text(text), text)
        for value in ("/bPxRfiCYEXAMPLEKEYwJalrXUtnFEMI/K7MDENG", "/Ab3dE/x9Yz", "/swordfish"):
            self.assertNotIn(value, Scrubber(Redactor(), {}).text(f"AWS_SECRET_ACCESS_KEY={value}"))

    @given(st.text(st.sampled_from("/a.B_0-~ ='\"\\KEYTOKN\n"), max_size=300))
    def test_any_text_takes_little_time(self, text: str) -> None:
        Scrubber(Redactor(), {}).text(text)

    def test_hostile_texts_take_little_time(self) -> None:
        began = time.thread_time()
        for piece in ("/ab", "/a.a-a", "A_TOKEN=", "set -x ", "set --a -b ", "'", "A_KEY='\\", "f" * 64):
            Scrubber(Redactor(), {}).text(f"X_TOKEN={piece * 20_000}!")
        self.assertLess(time.thread_time() - began, 20.0)


class VariableTests(SynchronousTestCase):
    """Names of variables."""

    def test_names(self) -> None:
        for name in (
            "GH_PAT",
            "MY_API_KEY",
            "APIKEY",
            "aws_secret_access_key",
            "GH_TOKEN",
            "TOKEN",
            "PGPASSWORD",
            "CREDENTIALS",
        ):
            self.assertTrue(is_secret_variable(name), name)
        for name in ("PATH", "COMPAT", "HOME", "KEYBOARD", "MONKEY", "TOKENIZERS_PARALLELISM", "EDITOR"):
            self.assertFalse(is_secret_variable(name), name)

    def test_only_what_is_named_is_sent_and_never_a_secret(self) -> None:
        environ = {"PATH": "/bin", "GH_TOKEN": CANARY, "OTHER": "x"}
        self.assertEqual(
            environment({**environ, "LANG": None}, ("PATH", "GH_TOKEN", "MISSING", "LANG")), {"PATH": "/bin"}
        )
