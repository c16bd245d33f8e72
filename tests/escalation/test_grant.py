from __future__ import annotations

import json

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.errors import NotAllowed
from ironcurtain.escalation import Grant, arguments_digest
from ironcurtain.escalation.grant import GRANT_SECONDS, Binding

BINDING = Binding("s1", "d" * 64, "v1")

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
ARGUMENTS = st.dictionaries(st.text(), VALUES, max_size=4)


class GrantTests(SynchronousTestCase):
    def test_it_is_spent_once(self) -> None:
        grant = Grant(BINDING, 100.0)
        grant.spend(BINDING, 50.0)
        with self.assertRaisesRegex(NotAllowed, "already been used"):
            grant.spend(BINDING, 50.0)

    def test_it_is_for_one_call_under_one_policy_in_one_session(self) -> None:
        grant = Grant(BINDING, 100.0)
        for other in ({"session_id": "s2"}, {"digest": "e" * 64}, {"policy_version": "v2"}):
            with self.assertRaisesRegex(NotAllowed, "another call"):
                grant.spend(replace(BINDING, **other), 50.0)
        grant.spend(BINDING, 50.0)

    def test_it_grows_old(self) -> None:
        Grant(BINDING, GRANT_SECONDS).spend(BINDING, GRANT_SECONDS)
        with self.assertRaisesRegex(NotAllowed, "has expired"):
            Grant(BINDING, GRANT_SECONDS).spend(BINDING, GRANT_SECONDS + 0.001)


class DigestTests(SynchronousTestCase):
    @settings(deadline=None)
    @given(ARGUMENTS)
    def test_the_order_of_members_does_not_matter(self, arguments: dict[str, object]) -> None:
        backwards = dict(reversed(arguments.items()))
        self.assertEqual(arguments_digest("s", "t", arguments), arguments_digest("s", "t", backwards))

    @settings(deadline=None)
    @given(ARGUMENTS, ARGUMENTS)
    def test_different_arguments_differ(self, one: dict[str, object], other: dict[str, object]) -> None:
        digests = {arguments_digest("s", "t", arguments) for arguments in (one, other)}
        texts = {json.dumps(arguments, sort_keys=True) for arguments in (one, other)}
        self.assertEqual(len(digests), len(texts))

    def test_what_looks_alike_differs(self) -> None:
        looks: list[tuple[str, str, dict[str, object]]] = [
            ("a", "b", {}),
            ("ab", "", {}),
            ("a", "", {"b": {}}),
            ("a", "b", {"x": 1}),
            ("a", "b", {"x": 1.0}),
            ("a", "b", {"x": "1"}),
            ("a", "b", {"x": True}),
            ("a", "b", {"x": [1]}),
            ("a", "b", {"x": None}),
            ("a", "b", {"x": "e\u0301"}),
            ("a", "b", {"x": "\u00e9"}),
            ("a", "b", {"x": "\u00e9 "}),
        ]
        self.assertEqual(len({arguments_digest(*look) for look in looks}), len(looks))
