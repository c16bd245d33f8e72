from __future__ import annotations

from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.shell_integration.preparation import NONCE, SAVED, STARTUP, VARIABLES, Prepared, prepare

ENVIRON = {"PATH": "/usr/bin", "HOME": "/home/user"}


def prepared(*argv: str, **environ: str) -> Prepared:
    return prepare(argv[0], argv[1:], {**ENVIRON, **environ}, "5e8f")


class BashTests(SynchronousTestCase):
    def test_interactive(self) -> None:
        got = prepared("/bin/bash", "-o", "vi", "-i")
        self.assertEqual((got.argv[:2], got.argv[3:]), (("/bin/bash", "--rcfile"), ("-o", "vi", "-i")))
        self.assertTrue(Path(got.argv[2]).is_file())
        self.assertEqual(got.environ, {**ENVIRON, NONCE: "5e8f"})
        self.assertTrue(got.integrated)

    def test_login(self) -> None:
        for argument in ("-l", "--login", "-il"):
            got = prepared("bash", argument, ENV="theirs")
            self.assertEqual(got.argv, ("bash", "--posix", argument))
            self.assertTrue(Path(got.environ["ENV"]).is_file())
            self.assertEqual((got.environ[SAVED + "ENV"], got.environ[STARTUP]), ("theirs", "login"))

    def test_files_that_are_not_read(self) -> None:
        self.assertEqual(prepared("bash", "--norc").environ[STARTUP], "norc")
        got = prepared("bash", "--noprofile", "--login", "--norc")
        self.assertEqual((got.argv, got.environ[STARTUP]), (("bash", "--posix", "--login"), "noprofile norc login"))
        self.assertNotIn(SAVED + "ENV", got.environ)


class ZshTests(SynchronousTestCase):
    def test_its_files_are_found_through_ours(self) -> None:
        got = prepared("zsh", "-l", ZDOTDIR="/theirs")
        self.assertEqual(got.argv, ("zsh", "-l"))
        self.assertTrue((Path(got.environ["ZDOTDIR"]) / ".zshenv").is_file())
        self.assertEqual((got.environ[SAVED + "ZDOTDIR"], got.environ[NONCE]), ("/theirs", "5e8f"))
        self.assertNotIn(SAVED + "ZDOTDIR", prepared("zsh").environ)


class FishTests(SynchronousTestCase):
    def test_the_last_command_at_its_start_is_ours(self) -> None:
        got = prepared("fish", "-l", "-C", "echo theirs")
        self.assertEqual(got.argv[:5], ("fish", "-l", "-C", "echo theirs", "--init-command"))
        self.assertTrue(Path(got.argv[5].removeprefix("source '").removesuffix("'")).is_file())


class PlainTests(SynchronousTestCase):
    def test_left_as_they_are(self) -> None:
        for argv, why in {
            ("bash", "-c", "ls"): "it runs one command",
            ("bash", "-lc", "ls"): "it runs one command",
            ("fish", "--command=ls"): "it runs one command",
            ("zsh", "script.zsh"): "it runs a script",
            ("bash", "-O", "extglob", "script"): "it runs a script",
            ("bash", "--", "-x"): "it runs a script",
            ("bash", "--rcfile", "file"): "it is started with --rcfile",
            ("zsh", "-f"): "it is started with -f",
            ("fish", "-Pn"): "it is started with -n",
            ("/bin/dash", "-i"): "dash is none of bash, zsh, fish",
        }.items():
            self.assertEqual(prepared(*argv), Prepared(argv, ENVIRON, False, why))


class VariableTests(SynchronousTestCase):
    def test_names_are_given_and_nothing_else(self) -> None:
        for argv in (("bash",), ("bash", "-l"), ("zsh",), ("fish",)):
            got = prepare(argv[0], argv[1:], ENVIRON, "5e8f", ("PATH", "a b", "$(ls)", "größe", "_x1"))
            self.assertEqual(got.environ[VARIABLES], "PATH _x1")
        self.assertNotIn(VARIABLES, prepared("bash").environ)
        self.assertNotIn(VARIABLES, prepare("dash", (), ENVIRON, "5e8f", ("PATH",)).environ)
