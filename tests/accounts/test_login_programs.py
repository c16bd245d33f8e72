from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.accounts.login_files import USUAL_FILES
from ironcurtain.accounts.login_programs import PROGRAMS, claude_owner
from ironcurtain.accounts.places import ACCOUNT_NAMES
from ironcurtain.agents.registry import installed
from ironcurtain.http.hosts import parse_host


class ProgramTests(SynchronousTestCase):
    def test_each_account_has_a_program_in_an_agents_image(self) -> None:
        self.assertEqual(tuple(PROGRAMS), ACCOUNT_NAMES)
        images = {installed().find(name).image for name in installed().names}
        for name, program in PROGRAMS.items():
            self.assertIn(program.agent, images)
            self.assertIn(f"~/{program.file}", USUAL_FILES[name])

    def test_hosts_are_single_names(self) -> None:
        for program in PROGRAMS.values():
            for name in program.hosts:
                host = parse_host(name)
                assert host is not None
                self.assertEqual((host.name, host.is_address), (name, False))


class OwnerTests(SynchronousTestCase):
    def test_owner_of_a_claude_login_is_its_address(self) -> None:
        self.assertEqual(claude_owner(b'{"oauthAccount": {"emailAddress": "ada@example.com"}}'), "ada@example.com")

    @given(
        st.binary(max_size=60)
        | st.dictionaries(
            st.just("oauthAccount"),
            st.none() | st.dictionaries(st.just("emailAddress"), st.none() | st.integers() | st.text()),
        ).map(lambda whole: json.dumps(whole).encode())
    )
    def test_anything_else_gives_printable_text(self, data: bytes) -> None:
        self.assertTrue(claude_owner(data).isprintable())
