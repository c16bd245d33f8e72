"""Contexts of the command ``docker``, in files as it writes them."""

from __future__ import annotations

import contextlib
import hashlib
import json
import shutil
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.container.docker_context import DockerContext, used_context
from ironcurtain.errors import ConfigurationError

SOCKET = "unix:///run/user/1000/docker.sock"


class ContextTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.home = Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.home)
        self.config = self.home / ".docker" / "config.json"
        self.environ = {"HOME": str(self.home)}
        self.context("mine", SOCKET)
        self.context("far", "ssh://me@host")

    def context(self, name: str, host: str) -> None:
        """Make one."""
        endpoints: dict[str, Any] = {"docker": {"Host": host, "SkipTLSVerify": False}}
        place = self.config.parent / "contexts" / "meta" / hashlib.sha256(name.encode()).hexdigest()
        place.mkdir(parents=True)
        (place / "meta.json").write_text(json.dumps({"Name": name, "Metadata": {}, "Endpoints": endpoints}))

    def use(self, text: str) -> None:
        """Write what ``docker context use`` does."""
        self.config.write_text(text)

    def test_the_one_in_use_is_found(self) -> None:
        self.assertIsNone(used_context(self.environ))
        self.use('{"auths": {}, "currentContext": "mine"}')
        self.assertEqual(used_context(self.environ), DockerContext("mine", SOCKET))
        moved = {"DOCKER_CONFIG": str(self.config.parent)}
        self.assertEqual(used_context(moved), DockerContext("mine", SOCKET))

    def test_the_environment_goes_before_the_file(self) -> None:
        self.use('{"currentContext": "mine"}')
        self.assertIsNone(used_context({**self.environ, "DOCKER_HOST": "unix:///x"}))
        for environ in ({"DOCKER_CONTEXT": "far"}, {"DOCKER_CONTEXT": "far", "DOCKER_HOST": "unix:///x"}):
            self.assertEqual(used_context({**self.environ, **environ}), DockerContext("far", "ssh://me@host"))
        self.assertIsNone(used_context({**self.environ, "DOCKER_CONTEXT": "default"}))

    def test_what_is_missing_or_wrong_counts_as_none(self) -> None:
        for text in ("", "[]", '{"currentContext": 7}', '{"currentContext": "gone"}', '{"currentContext": "default"}'):
            self.use(text)
            self.assertIsNone(used_context(self.environ), text)

    @given(st.binary())
    def test_any_file_is_read(self, content: bytes) -> None:
        self.config.write_bytes(content)
        with contextlib.suppress(ConfigurationError):
            self.assertIsNone(used_context(self.environ))
