"""References to variables of the environment."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.mcp_proxy.references import References
from tests.audit.doubles import scratch
from tests.login import login_environ

NAMES = st.sampled_from(["A", "B_1", "UNSET", "HOME", "workspaceFolder"])
PIECES = st.one_of(
    NAMES.map(lambda name: f"${{{name}}}"),
    NAMES.map(lambda name: f"${{env:{name}}}"),
    NAMES.map(lambda name: f"${{{name}:-d}}"),
    st.sampled_from(
        ["$", "{", "}", "${", "$HOME", "$A", "~/", "x", " ", "${input:a}", "${A:-${B_1}}", "{env:A}", ":-"]
    ),
)


class ReferencesTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.make()

    def make(self, *own: str, **environ: str) -> None:
        self.found = References(environ, "/srv/w", "/home/ada", own)

    def value(self, text: str) -> str:
        return self.found.value(text, "env.X")

    def word(self, text: str) -> str:
        return self.found.word(text, "args[0]")

    def test_each_spelling_of_a_variable(self) -> None:
        self.make(KEY="v")
        for text in ("${KEY}", "${env:KEY}", "{env:KEY}", "$KEY", "${KEY:-d}", "${env:KEY:-d}", "${NONE:-${KEY}}"):
            self.assertEqual(self.value(text), "v", text)
        self.assertEqual(self.value("Bearer $KEY"), "Bearer v")
        self.assertEqual(self.value("a${KEY}b${KEY}"), "avbv")
        self.assertEqual((list(self.found.used), self.found.problems), (["KEY"], []))

    def test_defaults_stand_for_variables_that_are_unset_or_empty(self) -> None:
        self.make(EMPTY="")
        for text in ("${NONE:-d}", "${EMPTY:-d}"):
            self.assertEqual(self.value(text), "d")
        self.assertEqual([self.value("${EMPTY}"), self.value("${NONE:-}")], ["", ""])
        self.assertEqual(self.found.problems, [])

    def test_references_of_workflows_are_not_sent_as_they_are(self) -> None:
        self.value("Bearer ${{ secrets.WIKI }}")
        self.assertIn("${{ secrets.WIKI }} is not known to IronCurtain", self.found.problems[0])

    def test_directory_of_several_is_the_workspace_or_named(self) -> None:
        for read in (self.value, self.word):
            self.make()
            self.assertEqual(read("${workspaceFolder:w}/a"), "/srv/w/a")
            self.assertEqual(self.found.problems, [])
            read("${workspaceFolder:api}/a")
            (problem,) = self.found.problems
            self.assertIn("${workspaceFolder:api} is another directory than the workspace", problem)

    def test_directories(self) -> None:
        for text, expected in (
            ("${workspaceFolder}/a", "/srv/w/a"),
            ("${workspaceFolderBasename}", "w"),
            ("${userHome}${/}b", "/home/ada/b"),
            ("~/c", "/home/ada/c"),
            ("a~/c", "a~/c"),
            ("$WORKSPACE ${HOME}", "/srv/w /home/ada"),
        ):
            self.assertEqual((self.value(text), self.word(text)), (expected, expected))
        self.assertEqual(self.found.path("${workspaceFolder}/${A}"), "/srv/w/${A}")
        self.assertEqual(self.found.used, {})

    def test_the_search_path_is_extended(self) -> None:
        self.make(PATH="/usr/bin:/bin")
        self.assertEqual(self.value("/opt/bin:$PATH"), "/opt/bin:/usr/bin:/bin")
        self.assertEqual(self.found.secrets, [])

    def test_other_dollars_stay(self) -> None:
        for text in ("pa$word", "$5", "a$KEY", "$", "${", "$$"):
            self.assertEqual(self.value(text), text)
        for text in ("${x%%y}", "${#x}", "$KEY", "${x:0:3}"):
            self.assertEqual(self.word(text), text)
        self.assertEqual(self.found.problems, [])

    def test_a_variable_that_is_not_set_is_named(self) -> None:
        self.value("${NONE}")
        self.word("${NONE}")
        named = "the environment variable NONE is not set; set it, or write ${NONE:-default}"
        self.assertEqual(self.found.problems, [f"env.X: {named}", f"args[0]: {named}"])

    def test_what_other_clients_fill_in_is_named(self) -> None:
        self.value("Bearer ${input:token}")
        self.value("${command:pick}")
        self.value("${x%%y}")
        first, second, third = self.found.problems
        self.assertIn("env.X: ${input:token} is asked for by VS Code only", first)
        self.assertIn("${command:pick} is filled in by another client only", second)
        self.assertIn("${x%%y} is not known", third)

    def test_values_are_not_expanded_again(self) -> None:
        self.make(KEY="${OTHER} $OTHER ~/", OTHER="secret")
        self.assertEqual(self.value("${KEY}"), "${OTHER} $OTHER ~/")
        self.assertEqual(list(self.found.used), ["KEY"])

    def test_secrets_are_kept_for_the_redactor(self) -> None:
        self.make(GH_TOKEN="word", CODE="ab12-cd34-ef56", MODE="production", DIR="/srv/data")
        self.value("${GH_TOKEN} ${CODE} ${MODE} ${DIR}")
        self.assertEqual([secret.reveal() for secret in self.found.secrets], ["word", "ab12-cd34-ef56"])

    def test_no_secret_gets_into_a_command_line(self) -> None:
        token = "0123456789abcdefXYZ"
        self.make(GH_TOKEN="word", PLAIN=token, PORT="8080", REGION="eu-west-1")
        for text in ("--key=${GH_TOKEN}", "${PLAIN}", "${NONE:-${PLAIN}}"):
            self.assertNotIn(token, self.word(text))
        self.assertEqual(len(self.found.problems), 2)
        self.assertIn("may be a secret, and everybody on this machine can read a command line", self.found.problems[0])
        self.assertIn('"env": {"GH_TOKEN": "${GH_TOKEN}"}', self.found.problems[0])
        self.assertEqual(self.word("${PORT} ${REGION}"), "8080 eu-west-1")

    def test_variables_of_a_login_are_no_secrets(self) -> None:
        """``PWD`` ends as names of passwords do; what names an existing path is none."""
        environ = login_environ(scratch(self) / "a person")
        self.make(**environ)
        del environ["HOME"]  # the session's
        self.assertEqual({name: self.word(f"${{{name}}}") for name in environ}, environ)
        self.assertEqual(self.found.problems, [])
        self.make(GH_TOKEN="/nowhere/of/that/name")
        self.assertEqual((self.word("${GH_TOKEN}"), len(self.found.problems)), ("", 1))

    def test_programs_expand_variables_of_their_own(self) -> None:
        self.make("AUTH", AUTH="0123456789abcdefXYZ")
        self.assertEqual(self.word("Authorization:${AUTH}"), "Authorization:${AUTH}")
        self.assertEqual(self.found.problems, [])

    @given(st.lists(PIECES).map("".join))
    def test_no_reference_is_left_without_a_problem(self, text: str) -> None:
        self.make(A="v", B_1="w")
        expanded = self.value(text)
        if not self.found.problems:
            self.assertNotRegex(expanded, r"\$\{[^{}]*\}")
        self.word(text)

    @given(st.text())
    def test_any_text_is_taken(self, text: str) -> None:
        self.value(text)
        self.word(text)
        self.found.path(text)
