from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.providers.headers import HeaderRole, role
from tests.mitm_proxy.agents import ALL


class RoleTests(SynchronousTestCase):
    def test_what_agents_send_is_passed_on_or_made_anew(self) -> None:
        names = {name for sent in ALL for name, _ in sent.headers}
        roles = {name: role(name) for name in names}
        kept = {name for name, found in roles.items() if found is HeaderRole.KEEP}
        self.assertEqual(names - kept, {"connection", "content-type", "content-length", "accept-encoding"})

    def test_names_that_only_resemble_a_credential_are_passed_on(self) -> None:
        for name in ("idempotency-key", "x-author", "x-authority", "anthropic-max-tokens", "x-keyboard", "monkey"):
            self.assertIs(role(name), HeaderRole.KEEP, name)

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
