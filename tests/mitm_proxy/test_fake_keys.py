from __future__ import annotations

import re
import secrets

from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.accounts.login import claims, expiry
from ironcurtain.mitm_proxy.fake_tokens import fake_token
from ironcurtain.providers.rules import provider_rules


class FakeKeyTests(SynchronousTestCase):
    def test_each_has_the_shape_of_its_providers_keys(self) -> None:
        shapes = (r"sk-ant-api03-[A-Za-z0-9_-]{32}", r"sk-proj-[A-Za-z0-9_-]{32}", r"AIza[A-Za-z0-9_-]{32}")
        for rule, shape in zip(provider_rules({}, ["anthropic", "openai", "google"]), shapes, strict=True):
            self.assertTrue(re.fullmatch(shape, fake_token(rule, secrets.token_bytes).secret.reveal()), rule.name)

    def test_it_is_made_of_192_random_bits_and_nothing_else(self) -> None:
        (rule,) = provider_rules({}, ["anthropic"])
        asked: list[int] = []

        def random_bytes(count: int) -> bytes:
            asked.append(count)
            return bytes(range(count))

        keys = {fake_token(rule, random_bytes).secret.reveal() for _ in range(2)}
        self.assertEqual((asked, len(keys)), ([24, 24], 1))
        self.assertEqual(len({fake_token(rule, secrets.token_bytes).secret.reveal() for _ in range(100)}), 100)

    def test_each_bit_shows(self) -> None:
        (rule,) = provider_rules({}, ["google"])
        single_bits = iter([(1 << bit).to_bytes(24, "big") for bit in range(192)])
        self.assertEqual(
            len({fake_token(rule, lambda count: next(single_bits)).secret.reveal() for _ in range(192)}), 192
        )

    def test_it_is_hidden(self) -> None:
        (rule,) = provider_rules({}, ["openai"])
        self.assertNotIn("sk-proj-", repr(fake_token(rule, secrets.token_bytes)))


class AccountTests(SynchronousTestCase):
    """Fake tokens of logins."""

    def test_each_has_the_shape_of_the_real_ones(self) -> None:
        for name, shape in (
            ("claude", r"sk-ant-oat01-[A-Za-z0-9_-]{32}"),
            ("google-login", r"ya29\.[A-Za-z0-9_-]{32}"),
            ("copilot", r"gho_[A-Za-z0-9_-]{32}"),
            ("openrouter", r"sk-or-v1-[A-Za-z0-9_-]{32}"),
        ):
            (rule,) = provider_rules({}, [name])
            fake = fake_token(rule, secrets.token_bytes)
            self.assertTrue(re.fullmatch(shape, fake.secret.reveal()), name)
            self.assertIsNone(fake.account)

    def test_token_of_chatgpt_has_claims_that_agents_read(self) -> None:
        (rule,) = provider_rules({}, ["chatgpt"])
        fake = fake_token(rule, secrets.token_bytes)
        assert fake.account is not None
        found = claims(fake.secret.reveal())
        self.assertEqual(found["https://api.openai.com/auth"]["chatgpt_account_id"], fake.account.reveal())
        self.assertTrue(re.fullmatch(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", fake.account.reveal()))
        self.assertGreater(expiry(fake.secret.reveal()) or 0, 4e9)
        other = fake_token(rule, secrets.token_bytes)
        self.assertNotEqual((other.secret, other.account), (fake.secret, fake.account))
