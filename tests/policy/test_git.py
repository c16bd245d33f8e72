"""Where the addresses of git remotes lead."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.policy.targets import HostileRemote, Target, git_target


class RemoteTests(SynchronousTestCase):
    """:func:`git_target`"""

    def test_one_repository_in_many_spellings(self) -> None:
        for text in (
            "https://github.com/acme/app.git",
            "https://GitHub.com:443/acme/app",
            "https://user:p%40ss@github.com/acme/app/",
            "ssh://git@github.com:22/acme/app.git",
            "git+ssh://git@github.com/acme/app.git",
            "git@github.com:acme/app.git",
            "git@github.com:/acme/app",
            "github.com:acme/app",
            "https://evil.test@github.com/acme/app",
        ):
            self.assertEqual(git_target(text).repository, "github.com/acme/app", text)

    def test_other_repositories(self) -> None:
        for text in (
            "https://github.com/acme/app/../../evil/x",
            "https://github.com/acme/app-evil.git",
            "https://github.com@evil.test/acme/app",
            "https://github.com/acme/app?x",
            "https://github.com/acme%2fapp",
            "git@github.com.evil.test:acme/app",
            "git@evil.test:github.com/acme/app",
        ):
            self.assertNotEqual(git_target(text).repository, "github.com/acme/app", text)

    def test_no_host(self) -> None:
        for text, certain in (("origin", False), ("a/b", False), ("/srv/x", True), ("./x", True), ("../x:y", True)):
            self.assertEqual(git_target(text), Target(text, certain=certain))
        for text in ("file:///srv/x", "~/x"):
            self.assertEqual(git_target(text), Target(text))

    def test_what_programs_could_read_differently_is_refused(self) -> None:
        for text in (
            "https://github.com\\@evil.test/acme/app",
            "https://github.com/acme\\app",
            "https://a b/x",
            "https:///x",
            "https://a@b@github.com/acme/app",
            "https://github.com#@evil.test/x",
            "https://127.1/x",
            "ssh://git@github.com:0022/acme/app",
            "ssh://git@ok\uff0etest/acme/app",
            "git@github.com.:acme/app",
            "git@0x7f.1:acme/app",
            "https://%67ithub.com/acme/app",
        ):
            error = self.assertRaises(HostileRemote, git_target, text)
            self.assertRegex(str(error), "programs could read it|backslash", text)

    def test_what_would_run_a_program(self) -> None:
        for text in (
            "--upload-pack=touch x",
            "-oProxyCommand=x",
            "ext::sh -c x",
            "EXT::x",
            "fd::17",
            "foo://host/x",
            "ssh://-oProxyCommand=x/y",
            "ssh://git@-oProxyCommand=x/y",
            "-x@host:y",
            "git@-host:y",
            "https://host/a\nb",
            "a/b://c",
        ):
            self.assertRaises(HostileRemote, git_target, text)
