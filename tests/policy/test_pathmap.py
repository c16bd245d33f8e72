from __future__ import annotations

import string

from hypothesis import assume, given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.policy.pathmap import PathMap, file_path

NAMES = st.text(string.ascii_letters + string.digits + " ._-%+#?()[]$\\äß", min_size=1, max_size=8).filter(
    lambda name: name not in (".", "..") and name == name.strip()
)
RELATIVE = st.lists(NAMES, min_size=1, max_size=3).map("/".join)
HOSTS = st.lists(NAMES, min_size=1, max_size=4).map(lambda names: "/" + "/".join(names))

PATHS = PathMap("/home/me/code")


class PathTests(SynchronousTestCase):
    def test_what_counts_as_the_workspace(self) -> None:
        for agent, host in (
            ("/workspace", "/home/me/code"),
            ("/workspace/", "/home/me/code/"),
            ("/workspace/a b", "/home/me/code/a b"),
            ("a/b", "/home/me/code/a/b"),
            ("../a", "/home/me/code/../a"),
            ("", "/home/me/code"),
            (".", "/home/me/code/."),
            ("/workspace-evil/a", "/workspace-evil/a"),
            ("/workspacea", "/workspacea"),
            ("/etc/passwd", "/etc/passwd"),
            ("//workspace/a", "//workspace/a"),
            ("~/a", "~/a"),
            ("~root", "~root"),
        ):
            self.assertEqual(PATHS.to_host(agent), host)

    def test_agent_in_the_workspaces_own_path_knows_both_names(self) -> None:
        paths = PathMap("/home/me/code", "/home/me/code")
        for agent in ("/workspace/a b", "/home/me/code/a b", "a b"):
            self.assertEqual(paths.to_host(agent), "/home/me/code/a b")
        self.assertEqual(paths.to_host("/workspace-evil/a"), "/workspace-evil/a")
        self.assertEqual(paths.to_agent("/home/me/code/a"), "/home/me/code/a")
        for text in ("see /home/me/code/a", "see file:///home/me/code/a", "see /workspace/a"):
            self.assertEqual(paths.to_agent_text(text), text)

    @given(HOSTS, RELATIVE)
    def test_both_names_are_one_file(self, host: str, relative: str) -> None:
        assume(not host.startswith("/workspace"))
        for paths in (PathMap(host), PathMap(host, host)):
            self.assertEqual(paths.to_host(f"/workspace/{relative}"), paths.to_host(f"{host}/{relative}"))

    @given(HOSTS, RELATIVE)
    def test_there_and_back(self, host: str, relative: str) -> None:
        assume(not host.startswith("/workspace") and not relative.startswith("~"))
        paths = PathMap(host)
        self.assertEqual(paths.to_agent(paths.to_host(relative)), f"/workspace/{relative}")
        self.assertEqual(paths.to_agent(paths.to_host(f"/workspace/{relative}")), f"/workspace/{relative}")

    @given(HOSTS, RELATIVE)
    def test_neighbours_are_not_the_workspace(self, host: str, relative: str) -> None:
        paths = PathMap(host)
        for path in (f"{host}-evil", f"{host}.old/{relative}", f"{host}x"):
            self.assertEqual(paths.to_agent(path), path)


class TextTests(SynchronousTestCase):
    def test_where_a_path_begins_and_ends(self) -> None:
        for text, mapped in (
            ("/home/me/code", "/workspace"),
            ("in /home/me/code/a.c:12: error", "in /workspace/a.c:12: error"),
            ('{"path": "/home/me/code/a"}', '{"path": "/workspace/a"}'),
            ("'/home/me/code','/home/me/code/b'", "'/workspace','/workspace/b'"),
            ("(/home/me/code)", "(/workspace)"),
            ("--root=/home/me/code\n", "--root=/workspace\n"),
            ("file:///home/me/code/a", "file:///workspace/a"),
            ("/home/me/code-old/a", "/home/me/code-old/a"),
            ("/home/me/code.old", "/home/me/code.old"),
            ("/home/me/codeshop", "/home/me/codeshop"),
            ("/mnt/home/me/code", "/mnt/home/me/code"),
            ("/home/me", "/home/me"),
        ):
            self.assertEqual(PATHS.to_agent_text(text), mapped)

    @given(HOSTS, RELATIVE, st.sampled_from(("", "see ", '"', "=", "\n", "(")))
    def test_the_host_never_shows_in_paths(self, host: str, relative: str, before: str) -> None:
        assume("/workspace" not in host and host not in f"/{relative}")
        paths = PathMap(host)
        shown = paths.to_agent_text(f"{before}{host}/{relative}")
        self.assertEqual(shown, f"{before}/workspace/{relative}")
        self.assertEqual(paths.to_agent_text(shown), shown)

    def test_regular_expressions_in_names_are_only_names(self) -> None:
        paths = PathMap(r"/a.b/c(d)\1", r"/work\1")
        self.assertEqual(paths.to_agent_text(r"/a.b/c(d)\1/e /aXb/c(d)\1/e"), r"/work\1/e /aXb/c(d)\1/e")


class UriTests(SynchronousTestCase):
    def test_which_uris_are_files(self) -> None:
        for uri, path in (
            ("file:///workspace/a%20b", "/workspace/a b"),
            ("FILE:/workspace/a", "/workspace/a"),
            ("file://localhost/workspace/a", "/workspace/a"),
            ("file:///workspace/a%2f..%2fb", "/workspace/a/../b"),
            ("file:///workspace/a?query#fragment", "/workspace/a"),
            ("file:///workspace/a%3fb", "/workspace/a?b"),
            ("file://elsewhere/workspace/a", None),
            ("file:workspace/a", None),
            ("file:", None),
            ("file://localhost", None),
            ("https://host/workspace/a", None),
            ("/workspace/a", None),
        ):
            self.assertEqual(file_path(uri), path, uri)

    @given(st.text(max_size=30))
    def test_any_text_is_taken(self, text: str) -> None:
        for uri in (text, f"file:{text}", f"file://{text}"):
            path = file_path(uri)
            self.assertTrue(path is None or path.startswith("/"))
