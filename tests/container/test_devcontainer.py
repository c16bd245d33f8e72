from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.container.devcontainer import Devcontainer, in_directory, read_devcontainer
from ironcurtain.errors import ConfigurationError

PLACE = ".devcontainer/devcontainer.json"
SHELL = ("/bin/sh", "-c")


def read(text: str) -> Devcontainer:
    return read_devcontainer("FILE", PLACE, text)


class ReadTests(SynchronousTestCase):
    def refused(self, **members: Any) -> str:
        """:returns: why a file is refused."""
        return str(self.assertRaises(ConfigurationError, read, json.dumps(members)))

    def test_json_with_comments_names_an_image_and_variables(self) -> None:
        found = read('// mine\n{"image": "node:22", /* x */ "containerEnv": {"A": "b",},\n}')
        self.assertEqual((found.image, found.environment), ("node:22", {"A": "b"}))
        self.assertEqual((found.left_out, found.commands), ((), ()))

    def test_paths_are_relative_to_the_file(self) -> None:
        found = read('{"build": {"dockerfile": "Dockerfile", "context": "..", "args": {"V": "1"}, "target": "dev"}}')
        self.assertEqual((found.dockerfile, found.context), (".devcontainer/Dockerfile", ""))
        self.assertEqual((found.arguments, found.target), ({"V": "1"}, "dev"))
        self.assertEqual(read('{"dockerFile": "../Dockerfile"}').dockerfile, "Dockerfile")

    def test_files_outside_of_the_project_are_refused(self) -> None:
        for path in ("../../Dockerfile", "/etc/passwd", "a/../../../b"):
            self.assertIn("is outside the project", self.refused(build={"dockerfile": path}))
        self.assertIn("build.context", self.refused(build={"dockerfile": "x", "context": "../.."}))

    def test_what_would_open_the_container_has_no_effect_and_is_named(self) -> None:
        wishes = {
            "runArgs": ["--privileged"],
            "mounts": ["source=/,target=/host,type=bind"],
            "privileged": True,
            "capAdd": ["SYS_ADMIN"],
            "securityOpt": ["seccomp=unconfined"],
            "features": {"ghcr.io/devcontainers/features/docker-in-docker:2": {}},
            "remoteUser": "root",
            "build": {"options": ["--network=host"]},
        }
        found = read(json.dumps({"image": "a", **wishes}))
        for name in (
            "runArgs",
            "mounts",
            "privileged",
            "capAdd",
            "securityOpt",
            "features",
            "remoteUser",
            "build.options",
        ):
            self.assertTrue(any(line.startswith(f"{name} has no effect: ") for line in found.left_out), name)
        self.assertEqual(found.environment, {})

    def test_commands_have_three_forms_and_the_order_in_which_they_run(self) -> None:
        found = read(
            """{"image": "a", "postStartCommand": {"db": "start db", "web": ["web", "-p", "a b"]},
                "postCreateCommand": "npm ci\\nnpm test", "onCreateCommand": ["make"], "updateContentCommand": ""}"""
        ).commands
        self.assertEqual([each.title for each in found][:2], ["onCreateCommand", "postCreateCommand"])
        self.assertEqual([each.title for each in found][2:], ["postStartCommand db", "postStartCommand web"])
        argvs = [("make",), (*SHELL, "npm ci\nnpm test"), (*SHELL, "start db"), ("web", "-p", "a b")]
        self.assertEqual([each.argv for each in found], argvs)
        shown = ['["make"]', "npm ci\nnpm test", "start db", '["web","-p","a b"]']
        self.assertEqual([each.text for each in found], shown)
        self.assertEqual([each.is_once for each in found], [True, True, False, False])

    def test_commands_for_this_machine_or_an_editor_are_left_out(self) -> None:
        found = read('{"image": "a", "initializeCommand": "rm -rf ~", "postAttachCommand": {"x": ["y"]}}')
        self.assertEqual(found.commands, ())
        self.assertIn("initializeCommand has no effect: it would run on this machine", found.left_out)
        self.assertIn("postAttachCommand has no effect", " ".join(found.left_out))

    def test_commands_that_are_none_are_refused(self) -> None:
        values: tuple[Any, ...] = (7, ["a", 1], ["a", ""], {"x": {"y": "z"}}, {"x": []}, "a\0b", True)
        for value in values:
            self.assertIn("must be a command", self.refused(image="a", postCreateCommand=value), value)

    def test_variables_for_the_folder_of_the_workspace_have_its_path(self) -> None:
        found = read(
            """{"image": "a", "containerEnv": {"BIN": "${containerWorkspaceFolder}/bin"}, "postCreateCommand": {
                "a": "cd ${localWorkspaceFolder}; $x ${localWorkspaceFolderBasename}",
                "b": ["${containerWorkspaceFolder}/b.sh", "${containerWorkspaceFolders}", "${localEnv:X}"]}}"""
        )
        text, program = (command.argv_in("/src/my shop") for command in found.commands)
        self.assertEqual(text, (*SHELL, "cd /src/my shop; $x my shop"))
        self.assertEqual(program, ("/src/my shop/b.sh", "${containerWorkspaceFolders}", "${localEnv:X}"))
        self.assertEqual(in_directory(found.environment["BIN"], "/src"), "/src/bin")
        self.assertEqual(found.left_out, ())

    def test_variables_of_this_machine_get_nowhere(self) -> None:
        found = read('{"image": "a", "containerEnv": {"KEY": "${localEnv:API_KEY}", "B": "c"}}')
        self.assertEqual(found.environment, {"B": "c"})
        self.assertIn("containerEnv.KEY has no effect", found.left_out[0])
        self.assertIn("do not get into images", self.refused(image="a:${localEnv:X}"))
        self.assertIn("do not get into images", self.refused(build={"dockerfile": "D", "args": {"K": "${localEnv:X}"}}))

    def test_what_no_image_can_be_is_refused_with_the_reason(self) -> None:
        self.assertIn("Docker Compose is not supported", self.refused(dockerComposeFile="x.yml", service="a"))
        self.assertIn("needs either image or build.dockerfile", self.refused(name="x"))
        self.assertIn("needs either image or build.dockerfile", self.refused(image="a", build={"dockerfile": "D"}))
        self.assertIn("containerEnv", self.refused(image="a", containerEnv={"A B": "c"}))
        self.assertIn("must be text", self.refused(image=["a"]))
        self.assertIn("is not JSON", str(self.assertRaises(ConfigurationError, read, "{")))

    @given(
        st.dictionaries(
            st.sampled_from(("image", "build", "containerEnv", "features", "context", "service")),
            st.none()
            | st.text()
            | st.lists(st.text())
            | st.dictionaries(st.sampled_from(("dockerfile", "args", "context")), st.text()),
        )
    )
    def test_any_members_are_read_or_refused(self, members: dict[str, Any]) -> None:
        try:
            found = read(json.dumps(members))
        except ConfigurationError:
            return
        self.assertNotIn("..", f"{found.dockerfile}/{found.context}".split("/"))
