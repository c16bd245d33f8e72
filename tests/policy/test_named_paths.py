"""The paths that policies name: everywhere the same, or refused with the reason."""

from __future__ import annotations

import contextlib
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.errors import ConfigurationError
from ironcurtain.policy.loading import compiled_policy
from ironcurtain.policy.named_paths import WrongPath, directory_of, written
from ironcurtain.policy.paths import real_path
from tests.examples import examples
from tests.policy.worlds import World, rule

SAME = ("~/secrets", "~/secrets/", "~/secrets/**", "~/secrets/**/", "$HOME/secrets", "$HOME/secrets/**", "~//./secrets")
"""One directory."""

REFUSED = (
    ("", "write a path"),
    ("~/secrets/*", "no other wildcards"),
    ("~/secrets/*.pem", "no other wildcards"),
    ("~/**/.env", "no other wildcards"),
    ("~/**/**/.env", "no other wildcards"),
    ("/workspace/**/.env", "no other wildcards"),
    ("~/secret?", "no other wildcards"),
    ("~/[s]ecrets", "no other wildcards"),
    ("~/secrets**", "no other wildcards"),
    ("~/{a,secrets}", "braces"),
    ("~/Documents/..", ".."),
    ("/workspace/../secrets", ".."),
    ("~/secrets/../../x", ".."),
    ("secrets", "relative"),
    ("./secrets", "relative"),
    (".env", "relative"),
    ("**/.env", "relative"),
    ("~ada/secrets", "~ada is not expanded"),
    ("$CWD/secrets", "$CWD is known in [approval.filesystem] only"),
    ("$XDG_CONFIG_HOME/secrets", "variable $XDG_CONFIG_HOME"),
    ("${HOME}/secrets", "variable ${HOME}"),
    ("$HOMES/x", "variable $HOMES"),
    ("/home/$USER/secrets", "variable $USER"),
    ("~/a$", "variable $"),
    (" ~/secrets", "blank"),
    ("~/secrets ", "blank"),
    ("~/sec\u200brets", "invisible"),
    ("~/secrets\n", "invisible"),
    ("~/sec\0rets", "invisible"),
    ("~/\u202esterces", "invisible"),
    ("~/secrets\\", "backslash"),
    (r"~/Documents/\.\./secrets", "backslash"),
    (r"~/\secrets", "backslash"),
)


class DirectoryTests(SynchronousTestCase):
    """:func:`directory_of`"""

    def test_spellings_of_one_directory(self) -> None:
        self.assertEqual({directory_of(text) for text in SAME}, {"~/secrets"})
        for text, expected in (
            ("~", "~"),
            ("~/", "~"),
            ("$HOME", "~"),
            ("~/**", "~"),
            ("/", "/"),
            ("//", "/"),
            ("/**", "/"),
            ("/srv/./x//y/", "/srv/x/y"),
            ("/workspace/a", "/workspace/a"),
            ("$WORKSPACE/a/**", "/workspace/a"),
            ("/workspaces", "/workspaces"),
            (r"~/a\*\[b\]\$\{c\}\\d", r"~/a*[b]${c}\d"),
            ("~/~", "~/~"),
            ("~/...", "~/..."),
        ):
            self.assertEqual(directory_of(text), expected, text)

    def test_what_cannot_be_read_is_refused_with_the_reason(self) -> None:
        for text, why in REFUSED:
            self.assertIn(why, str(self.assertRaises(WrongPath, directory_of, text)), repr(text))

    def test_every_path_of_a_policy_is_read_so(self) -> None:
        for text, why in REFUSED:
            paths = {"roles": ["read-path"], "within": text}
            for policy in ({"rules": [], "protected": [text]}, {"rules": [rule("a", "deny", paths=paths)]}):
                error = self.assertRaises(ConfigurationError, compiled_policy, policy, "policy.toml")
                self.assertIn(why, str(error), repr(text))
                self.assertTrue(
                    str(error).startswith(
                        "policy.toml: protected[0]" if "protected" in policy else "policy.toml: rules[0]"
                    )
                )

    @settings(max_examples=examples(300), deadline=None, database=None)
    @given(st.lists(st.text("ab.*?[]{}$\\~ -", min_size=1, max_size=5), max_size=4))
    def test_a_written_path_is_read_as_it_was(self, names: list[str]) -> None:
        path = real_path("/" + "/".join(names))
        with contextlib.suppress(WrongPath):
            self.assertEqual(directory_of(written(path)), path)
        if path == path.strip():
            directory_of(written(path))

    @settings(max_examples=examples(500), deadline=None, database=None)
    @given(st.text(max_size=20) | st.text("~$HOMEWRKSPAC/*.\\ab[{", max_size=20))
    def test_a_path_that_is_read_is_normal(self, text: str) -> None:
        with contextlib.suppress(WrongPath):
            path = directory_of(text)
            self.assertTrue(path[0] in "/~")
            self.assertTrue(path == "/" or not set(path.split("/")[1:]) & {"", ".", ".."}, path)


class EnforcedTests(SynchronousTestCase):
    """Rules and protected paths in every spelling."""

    def setUp(self) -> None:
        self.world = World.make({"files": {"$HOME/secrets/key": "x", "$HOME/secrets/in/deep": "x", "$HOME/other": "x"}})
        self.addCleanup(self.world.remove)

    def decisions(self, rules: Any = (), **policy: Any) -> list[str]:
        """:returns: the verdicts on reading in the directory, deeper in it, and elsewhere."""
        allow = rule("all", "allow", paths={"roles": ["read-path"], "within": "~"})
        engine = self.world.engine([*rules, allow], **policy)
        calls = ({"path": f"~/{name}"} for name in ("secrets/key", "secrets/in/deep", "other"))
        return [str(self.world.ask(engine, "filesystem", "read_text_file", call).decision) for call in calls]

    def test_a_directory_is_protected_and_denied_in_every_spelling(self) -> None:
        for text in (*SAME, f"{self.world.home}/secrets/**"):
            within = {"roles": ["read-path"], "within": text}
            self.assertEqual(self.decisions([rule("no", "deny", paths=within)]), ["deny", "deny", "allow"], text)
            policy = compiled_policy({"rules": [], "protected": [text]})
            self.assertEqual(self.decisions(protected=policy.protected), ["deny", "deny", "allow"], text)
