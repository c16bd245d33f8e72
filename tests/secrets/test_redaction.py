from __future__ import annotations

import base64
import copy
import json
import pickle
import string
import time
from pathlib import Path
from urllib.parse import quote, quote_plus

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.secrets.redaction import SHORTEST_EXACT, Redactor, Secret, may_be_secret

VALUES = st.text(st.characters(min_codepoint=33, max_codepoint=0x2FF), min_size=SHORTEST_EXACT + 4, max_size=40).map(
    lambda text: f"Zq{text}"
)
TEXTS = st.text(string.ascii_letters + string.digits + " \n/{}\"'", max_size=30)

CREDENTIALS = (
    "sk-ant-api03-" + "aB3_" * 10,
    "sk-proj-" + "aB3x" * 8,
    "ghp_" + "a1B2" * 9,
    "github_pat_" + "a1B2_" * 8,
    "glpat-" + "a1B2c3D4e5" * 2,
    "xoxb-" + "1234567890-abc",
    "AKIA" + "ABCDEFGH12345678",
    "AIza" + "a1B2_" * 7,
    "ya29." + "a1B2_" * 7,
    "sk_live_" + "a1B2" * 5,
    "npm_" + "a1B2c3" * 6,
    "pypi-" + "a1B2" * 10,
    "hf_" + "a1B2" * 8,
    "eyJ" + "hbGciOiJI" + "." + "eyJzdWIiOiIx" + "." + "c2lnbmF0dXJl",
)
"""One of each kind, made up."""

EVIL = (
    "TOKEN",
    "eyJ-",
    "sk-a-",
    "-----BEGIN A",
    "bearer ",
    "1 ",
    "://a:b",
    "ghp_-",
    "key=",
    "pypi-.",
    'TOKEN" ',
    "4-",
    "A_",
)
"""Pieces that, repeated, make a pattern try again and again."""


class SecretTests(SynchronousTestCase):
    def test_no_way_of_printing_shows_it(self) -> None:
        secret = Secret("correct horse", "environment variable X")
        for shown in (
            repr(secret),
            str(secret),
            f"{secret}",
            f"{secret!r:>40}",
            repr([secret]),
            ascii(secret),
        ):
            self.assertNotIn("horse", shown)
        self.assertEqual((secret.reveal(), secret.origin), ("correct horse", "environment variable X"))

    def test_it_does_not_travel(self) -> None:
        for attempt in (pickle.dumps, copy.copy, copy.deepcopy, json.dumps):
            with self.assertRaises(TypeError):
                attempt(Secret("correct horse"))

    def test_equality_is_of_values(self) -> None:
        self.assertEqual({Secret("a"), Secret("a", "elsewhere")}, {Secret("a")})
        self.assertNotEqual(Secret("a"), "a")


class ExactValueTests(SynchronousTestCase):
    @given(VALUES, TEXTS, TEXTS)
    def test_no_form_of_a_live_secret_survives(self, value: str, before: str, after: str) -> None:
        redactor = Redactor([Secret(value)])
        for form in (
            value,
            quote(value, safe=""),
            quote_plus(value),
            json.dumps(value)[1:-1],
            json.dumps(value, ensure_ascii=False)[1:-1],
            value.encode().hex(),
        ):
            self.assertNotIn(form, redactor.text(f"{before}{form}{after}"))

    @given(VALUES, st.binary(max_size=5), st.binary(max_size=5))
    def test_base64_of_a_text_around_it(self, value: str, before: bytes, after: bytes) -> None:
        redactor = Redactor([Secret(value)])
        for encode, decode in (
            (base64.b64encode, base64.b64decode),
            (base64.urlsafe_b64encode, base64.urlsafe_b64decode),
        ):
            shown = redactor.text(encode(before + value.encode() + after).decode())
            self.assertIn("[redacted", shown)
            for piece in (shown.partition("[")[0], shown.rpartition("]")[2]):
                for cut in range(4):
                    usable = piece[cut : cut + (len(piece) - cut) // 4 * 4].replace("=", "")
                    padded = usable + "=" * (-len(usable) % 4)
                    try:
                        self.assertNotIn(value.encode()[2:], decode(padded))
                    except ValueError:
                        continue

    @given(VALUES, VALUES)
    def test_a_secret_that_holds_another(self, value: str, tail: str) -> None:
        shown = Redactor([Secret(value), Secret(value + tail)]).text(f"x {value}{tail} y {value} z")
        self.assertNotIn(value, shown)
        self.assertNotIn(tail, shown)

    def test_secrets_added_later_count(self) -> None:
        redactor = Redactor()
        self.assertEqual(redactor.text("correct horse"), "correct horse")
        redactor.add(Secret("correct horse"))
        self.assertEqual(redactor.text("a correct horse b"), "a [redacted] b")

    def test_one_that_stands_on_another(self) -> None:
        shared, own, later = (Secret(f"secret-number-{n}") for n in "123")
        base = Redactor([shared])
        redactor = Redactor(base=base)
        text = " ".join(secret.reveal() for secret in (shared, own, later))
        self.assertEqual(redactor.text(own.reveal()), own.reveal())
        redactor.add_own(own)
        redactor.add(later)
        for one, words in ((redactor, ["[redacted]"] * 3), (base, ["[redacted]", own.reveal(), "[redacted]"])):
            self.assertEqual(one.live(text).split(), words)
            self.assertEqual(one.text(text).split(), words)
            self.assertEqual(one.value({"a": [text]})["a"][0].split(), words)

    def test_a_short_one_does_not_blank_out_words(self) -> None:
        self.assertEqual(Redactor([Secret("the")]).text("the other"), "the other")


class VariableTests(SynchronousTestCase):
    def test_what_of_an_environment_is_kept_out_of_records(self) -> None:
        for name, value in (
            *(
                ("ACCOUNT", "blue-whale-42"),
                ("SHOP_TOKEN", "wonderful"),
                ("DB_PASSWORD", "/not/a/path"),
                ("X", "a" * 12),
            ),
            *(("DB", "postgres://me:pw@db/shop"), ("URL", "https://example.org/x?key=1"), ("X", "/x7f" + "aB3" * 12)),
        ):
            self.assertTrue(may_be_secret(name, value), value)
        for value in ("production", "/usr/bin:/bin", "~/notes", "$HOME/x", "https://example.org:8443/api/v1", "./a b"):
            self.assertFalse(may_be_secret("SETTING", value), value)

    def test_list_of_paths_one_of_which_is_gone_is_no_secret(self) -> None:
        there = Path(self.mktemp()).absolute() / "Größe, Maß und 日本語"
        there.mkdir(parents=True)
        self.assertFalse(may_be_secret("SETTING", f"/usr/lib/python311.zip:{there}:"))
        for value in (f"{there}:/x7f{'aB3' * 12}", f"{there}:hunter2", f"{there}:"[1:]):
            self.assertTrue(may_be_secret("SETTING", value), value)
        self.assertTrue(may_be_secret("SHOP_TOKEN", f"/usr/lib/python311.zip:{there}"))


class PatternTests(SynchronousTestCase):
    def test_credentials_that_we_never_held(self) -> None:
        for credential in CREDENTIALS:
            shown = Redactor().text(f"found {credential} in a file")
            self.assertNotIn(credential[-8:], shown, credential)
            self.assertTrue(shown.startswith("found [redacted "), shown)
            self.assertTrue(shown.endswith(" in a file"), shown)

    def test_private_keys(self) -> None:
        key = "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNza\n-----END OPENSSH PRIVATE KEY-----"
        self.assertEqual(Redactor().text(f"a\n{key}\nb"), "a\n[redacted private-key]\nb")
        self.assertEqual(Redactor().text(f"a\n{key[:-40]}"), "a\n[redacted private-key]")

    def test_numbers_after_a_line_end_in_a_value(self) -> None:
        for before in ("\n", "\t", "a\r\n", "\x00"):
            for number in ("4111 1111 1111 1111", "123-45-6789"):
                self.assertIn("redacted", Redactor().value({"text": f"{before}{number}"})["text"], repr(before))

    def test_what_stays_around_a_credential(self) -> None:
        redactor = Redactor()
        self.assertEqual(redactor.text("https://me:pass@host/x"), "https://[redacted password-in-url]@host/x")
        self.assertEqual(redactor.text('DB_PASSWORD="hunter2hunter2"'), 'DB_PASSWORD="[redacted]"')
        self.assertEqual(redactor.text("client_secret: abcdefgh1234"), "client_secret: [redacted]")
        self.assertEqual(
            redactor.text("Authorization: Bearer abcdefgh12345"), "Authorization: [redacted authorization]"
        )

    def test_ordinary_text_stays(self) -> None:
        for text in (
            "the token was refused",
            "tokens: 1234",
            "skip-this-long-name-of-a-branch",
            "2026-11-21T09:15:00Z took 1234567 ms",
            "commit 3b18e512dba79e4c8300dd08aeb37f8e728b8dad",
            "https://host:8443/path",
            "1700000000000000000 ns",
        ):
            self.assertEqual(Redactor().text(text), text)

    def test_card_and_social_security_numbers(self) -> None:
        redactor = Redactor()
        self.assertEqual(redactor.text("card 4111 1111 1111 1111."), "card [redacted card 1111].")
        self.assertEqual(redactor.text("ssn 078-05-1120"), "ssn [redacted ssn 1120]")
        self.assertEqual(redactor.text("order 4111 1111 1111 1112."), "order 4111 1111 1111 1112.")

    def test_no_text_takes_long(self) -> None:
        """A peer chooses the text: 64 KiB of the worst must not hold up everybody else."""
        redactor = Redactor()
        for piece in EVIL:
            text = (piece * 65536)[:65536]
            begin = time.process_time()
            redactor.text(text)
            self.assertLess(time.process_time() - begin, 1.0, piece)


class ValueTests(SynchronousTestCase):
    def test_everything_in_a_json_value(self) -> None:
        value = {"a": ["x correct horse", 1, None, True, {"correct horse": 2.5}], "n": 4111111111111111, "id": 10**15}
        self.assertEqual(
            Redactor([Secret("correct horse")]).value(value),
            {"a": ["x [redacted]", 1, None, True, {"[redacted]": 2.5}], "n": "[redacted card 1111]", "id": 10**15},
        )

    def test_members_whose_names_say_that_they_are_secret(self) -> None:
        value = {
            "password": "hunter2hunter2",
            "x-api-key": "whatever else",
            "token_count": "a sentence",
            "tokens": "another one",
        }
        shown = Redactor().value(value)
        self.assertEqual((shown["password"], shown["x-api-key"]), ("[redacted]", "[redacted]"))
        self.assertEqual(shown["tokens"], "another one")

    def test_the_value_itself_is_left_alone(self) -> None:
        value = {"a": ["correct horse"]}
        Redactor([Secret("correct horse")]).value(value)
        self.assertEqual(value, {"a": ["correct horse"]})

    def test_long_texts_are_cut_and_say_so(self) -> None:
        self.assertEqual(Redactor().value({"a": "x" * 12}, 10), {"a": "x" * 10 + "[2 more characters]"})
        self.assertEqual(Redactor().value("x" * 10, 10), "x" * 10)

    @given(st.integers(0, 60), st.integers(0, 5000))
    def test_no_part_of_a_secret_survives_at_the_cut(self, before: int, pem: int) -> None:
        """Neither where the text is cut, nor where the search ends while earlier replacements made the text shorter."""
        secret = "Zq" + "x9Wv" * 10
        key = f"-----BEGIN PRIVATE KEY-----{'A' * pem}-----END PRIVATE KEY-----"
        for text in ("y" * before + secret * 200, key + " " * before + secret * 200):
            self.assertNotIn(secret[:8], Redactor([Secret(secret)]).value(text, 64))
