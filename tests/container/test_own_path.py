from __future__ import annotations

import string

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.container.own_path import agent_directory, obstacle, workspace_places
from ironcurtain.container.spec import mounts
from tests.container.support import SPEC

NAMES = st.sampled_from(["usr", "home", "agent", "etc", "var", "tmp", "work", "me", "workspace", "a b"]) | st.text(
    string.ascii_lowercase, min_size=1, max_size=4
)


class ObstacleTests(SynchronousTestCase):
    def test_paths_of_projects_are_free(self) -> None:
        for path in (
            "/home/me/code", "/srv/site", "/opt/own/tool", "/mnt/disk/code", "/code", "/home/agents/x", "/usrs/x",
            "/var/home/me/code", "/var/www/site", "/workspaces/code",
        ):  # fmt: skip
            self.assertEqual((obstacle(path), agent_directory(path)), ("", path))

    def test_paths_of_the_image_are_named_and_replaced(self) -> None:
        for path, hidden in (
            ("/usr/src/app", "/usr"), ("/root", "/root"), ("/etc/nginx", "/etc"), ("/tmp/x", "/tmp"),
            ("/home/agent/code", "/home/agent"), ("/home/agent", "/home/agent"), ("/home", "/home"), ("/opt", "/opt"),
            ("/var/lib/x", "/var"), ("/var", "/var"), ("/var/www", "/var"), ("/run/ironcurtain/x", "/run/ironcurtain"),
            ("/workspace/x", "/workspace"), ("/", "/workspace"), ("/proc/1/cwd", "/proc"), ("/lib64/x", "/lib64"),
        ):  # fmt: skip
            self.assertEqual((obstacle(path), agent_directory(path)), (hidden, "/workspace"), path)

    @given(st.lists(NAMES, min_size=1, max_size=4).map(lambda names: "/" + "/".join(names)))
    def test_any_workspace_can_be_mounted(self, workspace: str) -> None:
        places = workspace_places(agent_directory(workspace), workspace)
        self.assertIn("/workspace", places)
        made = mounts(
            workspace=workspace, places=places, home="/h", sockets="/s", orientation="/o", passwd="/p", group="/g"
        )
        replace(SPEC, mounts=made, directory=places[0])


class PlacesTests(SynchronousTestCase):
    def test_the_directory_of_the_session_is_first_and_none_is_twice(self) -> None:
        self.assertEqual(workspace_places("/home/me/a", "/home/me/a"), ("/home/me/a", "/workspace"))
        self.assertEqual(workspace_places("/workspace", "/home/me/a"), ("/workspace", "/home/me/a"))
        self.assertEqual(workspace_places("/workspace", "/usr/src/a"), ("/workspace",))
        self.assertEqual(workspace_places("/workspace", ""), ("/workspace",))
