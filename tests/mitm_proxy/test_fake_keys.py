from __future__ import annotations

import re
import secrets

from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.mitm_proxy.proxy import fake_key
from ironcurtain.providers.rules import provider_rules


class FakeKeyTests(SynchronousTestCase):
    def test_each_has_the_shape_of_its_providers_keys(self) -> None:
        shapes = (r"sk-ant-api03-[A-Za-z0-9_-]{32}", r"sk-proj-[A-Za-z0-9_-]{32}", r"AIza[A-Za-z0-9_-]{32}")
        for rule, shape in zip(provider_rules({}, ["anthropic", "openai", "google"]), shapes, strict=True):
            self.assertTrue(re.fullmatch(shape, fake_key(rule, secrets.token_bytes).reveal()), rule.name)

    def test_it_is_made_of_192_random_bits_and_nothing_else(self) -> None:
        (rule,) = provider_rules({}, ["anthropic"])
        asked: list[int] = []

        def random_bytes(count: int) -> bytes:
            asked.append(count)
            return bytes(range(count))

        keys = {fake_key(rule, random_bytes).reveal() for _ in range(2)}
        self.assertEqual((asked, len(keys)), ([24, 24], 1))
        self.assertEqual(len({fake_key(rule, secrets.token_bytes).reveal() for _ in range(100)}), 100)

    def test_each_bit_shows(self) -> None:
        (rule,) = provider_rules({}, ["google"])
        single_bits = iter([(1 << bit).to_bytes(24, "big") for bit in range(192)])
        self.assertEqual(len({fake_key(rule, lambda count: next(single_bits)).reveal() for _ in range(192)}), 192)

    def test_it_is_hidden(self) -> None:
        (rule,) = provider_rules({}, ["openai"])
        self.assertNotIn("sk-proj-", repr(fake_key(rule, secrets.token_bytes)))
