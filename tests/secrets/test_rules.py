from __future__ import annotations

import json
import re
import time

from hypothesis import given, settings
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.secrets.redaction import Redactor
from ironcurtain.secrets.rules import any_of, find, is_secret_name, is_secret_option, rules
from tests.credentials import Sample, innocents, samples
from tests.examples import examples

SAMPLES = {f"{sample.kind} {number}": sample for number, sample in enumerate(samples())}

SURROUNDINGS = (
    "{}",
    "found it:\n{}\nin a file",
    " {} ",
    "\t{}\r\n",
    '"{}"',
    "({})",
    "%20{}",
    "é{}",
    "{}" + " filler" * 200,
)
"""What may stand around a credential."""

PIECES = (*"aA1=:.-_/@ \n\"'\\$", "token", "sk-", "://", "curl", "--a")


def shown(text: str) -> str:
    return Redactor().text(text)


class SampleTests(SynchronousTestCase):
    def check(self, sample: Sample, redacted: str, where: str) -> None:
        for piece in sample.secret.split():
            if len(piece) > 6:
                self.assertNotIn(piece[-7:], redacted, f"{sample.kind} {where}")
        self.assertIn("[redacted", redacted, f"{sample.kind} {where}")

    def test_there_are_enough_kinds(self) -> None:
        self.assertGreater(len({sample.kind for sample in SAMPLES.values()}), 100)

    def test_every_kind_wherever_it_stands(self) -> None:
        for sample in SAMPLES.values():
            for around in SURROUNDINGS:
                self.check(sample, shown(around.replace("{}", sample.text)), around)

    def test_keys_that_are_assigned_to_the_name_of_a_secret(self) -> None:
        for sample in SAMPLES.values():
            for around in "" if sample.before else ("API_TOKEN={}", "private_key: '{}'", '{"secret": "{}"'):
                self.check(sample, shown(around.replace("{}", sample.text)), around)

    def test_what_stands_around_it_stays(self) -> None:
        for sample in SAMPLES.values():
            redacted = shown(f"<< {sample.text} >>")
            self.assertTrue(redacted.startswith("<< "), sample.kind)
            if sample.kind not in ("password hash", "pgpass"):
                self.assertTrue(redacted.endswith(f"{sample.after} >>"), f"{sample.kind}: {redacted}")

    def test_in_the_arguments_of_a_call(self) -> None:
        for sample in SAMPLES.values():
            value = {"command": sample.text, "nested": [{"text": json.dumps({"x": sample.text})}], sample.text: 1}
            for line in json.dumps(Redactor().value(value), ensure_ascii=False).split('"nested"'):
                self.check(sample, line, "as JSON")

    def test_each_in_the_midst_of_all_others(self) -> None:
        redacted = shown("\n\n".join(sample.text for sample in SAMPLES.values()))
        for sample in SAMPLES.values():
            self.check(sample, redacted, "among others")

    def test_a_second_time_changes_nothing(self) -> None:
        for sample in SAMPLES.values():
            once = shown(f"see {sample.text} there")
            self.assertEqual(shown(once), once)

    def test_the_innocent_stay(self) -> None:
        for text in innocents():
            self.assertEqual(shown(text), text)
            self.assertEqual(Redactor().value({"text": text, "list": [text]}), {"text": text, "list": [text]})


class NameTests(SynchronousTestCase):
    def test_names_of_members(self) -> None:
        for name in (
            *("password", "dbPassword", "DB_PASSWORD", "x-api-key", "apiKey", "APIKEY", "client_secret", "accessToken"),
            *("Authorization", "Cookie", "set-cookie", "auth", "smtp_pass", "pwd", "private_key", "signing-key"),
        ):
            self.assertTrue(is_secret_name(name), name)
        for name in (
            *("tokens", "max_tokens", "tokenizer", "passenger", "author", "keyboard", "cookies_enabled", "token_type"),
            *("passwordFile", "secret_name", "path", "key", "", "access_key_id"),
        ):
            self.assertFalse(is_secret_name(name), name)

    def test_options(self) -> None:
        for option in ("--password", "--db-password", "--token", "--apiKey", "--pass", "-password"):
            self.assertTrue(is_secret_option(option), option)
        for option in ("--password-file", "--passive", "--key", "-p", "password", "--token=x", ""):
            self.assertFalse(is_secret_option(option), option)

    def test_an_option_and_its_value_as_two_arguments(self) -> None:
        value = {"args": ["mysqldump", "--password", "abc 12", "--host", "db.example.org"]}
        self.assertEqual(
            Redactor().value(value), {"args": ["mysqldump", "--password", "[redacted]", "--host", "db.example.org"]}
        )


class AnyOfTests(SynchronousTestCase):
    @given(st.sets(st.text("abc[.", min_size=1, max_size=5), min_size=1), st.text("abc[.", max_size=12))
    def test_the_longest_that_stands_there(self, words: set[str], text: str) -> None:
        match = re.match(any_of(words), text)
        longest = max((word for word in words if text.startswith(word)), key=len, default=None)
        self.assertEqual(match.group() if match else None, longest)


class WorkTests(SynchronousTestCase):
    """An agent chooses the text: what a search costs grows with its length and not faster."""

    def seconds(self, text: str) -> float:
        begin = time.process_time()
        find(text)
        return time.process_time() - begin

    def check(self, piece: str) -> None:
        small, large = ((piece * size)[:size] for size in (2048, 8192))
        took = self.seconds(large)
        if took > 0.02:  # four times the text takes sixteen times as long where the work grows with its square
            linear = any(self.seconds(large) < 9.0 * max(self.seconds(small), 1e-4) for _ in range(20))
            self.assertTrue(linear, f"{piece!r} takes {took} s")

    def test_starts_that_come_to_nothing(self) -> None:
        for start in sorted(rules().starts):
            for behind in ("", "A1", "=", " -", "x" * 9 + ".", "a" * 70, ' \\\n"'):
                self.check(start + behind)

    def test_credentials_again_and_again(self) -> None:
        for sample in SAMPLES.values():
            self.check(sample.text)
            self.check(sample.text[:-3])

    @settings(max_examples=examples(60), deadline=None)
    @given(st.lists(st.sampled_from(PIECES), min_size=1, max_size=6))
    def test_mixtures(self, pieces: list[str]) -> None:
        self.check("".join(pieces))
