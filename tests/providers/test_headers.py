from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.providers.headers import HeaderRole, role
from ironcurtain.providers.registry import KNOWN_PROVIDERS, OTHER
from tests.mitm_proxy.agents import ALL


class RoleTests(SynchronousTestCase):
    def test_headers_of_agents_are_known_or_have_a_role(self) -> None:
        for sent in ALL:
            known = KNOWN_PROVIDERS[sent.provider].headers
            names = {name for name, _ in sent.headers}
            self.assertLessEqual(names - known, {"connection", "content-type", "content-length", "accept-encoding"})
            self.assertLessEqual({"accept", "user-agent"}, known)

    def test_known_headers_have_no_other_role(self) -> None:
        for known in (*KNOWN_PROVIDERS.values(), OTHER):
            self.assertEqual({role(name) for name in known.headers}, {HeaderRole.UNKNOWN})

    def test_names_that_only_resemble_a_credential_are_none(self) -> None:
        for name in ("idempotency-key", "x-author", "x-authority", "anthropic-max-tokens", "x-keyboard", "monkey"):
            self.assertIs(role(name), HeaderRole.UNKNOWN, name)

    def test_names_of_credentials(self) -> None:
        for name in (
            "authorization",
            "x-authorization",
            "x-authorisation",
            "x-auth",
            "api-key",
            "apikey",
            "x_api_key",
            "key",
            "x-key",
            "anthropic-session-token",
            "x-client-secret",
            "x-password",
            "x-signature",
        ):
            self.assertIs(role(name), HeaderRole.CREDENTIAL, name)

    def test_as_many_names_as_one_likes_take_no_more_memory(self) -> None:
        for number in range(10_000):
            role(f"x-{number}")
        self.assertLess(role.cache_info().currsize, 1000)
