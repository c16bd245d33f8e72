from __future__ import annotations

import json
import signal
import time
from urllib.parse import quote

from ironcurtain.container.spec import SESSION_LABEL, owner_labels
from ironcurtain.process.identity import identify
from tests import engine
from tests.container_agent.test_leftovers import dead
from tests.product import Command
from tests.test_daemon import PATIENCE, DaemonCase


class StartTests(DaemonCase):
    """What the daemon does about containers when it starts."""

    def container(self, session: str, alive: bool) -> str:
        """:returns: the id of a container that runs for a process that lives or not."""
        body = {
            "Image": engine.image(),
            "Cmd": ["sleep", "77777"],
            "Labels": owner_labels(session, str(self.product.home), identify() if alive else dead()),
            "HostConfig": {"NetworkMode": "none"},
        }
        [made] = engine.call("POST", "/containers/create", json.dumps(body).encode())
        self.addCleanup(self._remove, made["Id"])
        engine.call("POST", f"/containers/{made['Id']}/start")
        return str(made["Id"])

    def _remove(self, container: str) -> None:
        if container in self.there():
            engine.call("DELETE", f"/containers/{container}?force=1")

    def there(self) -> set[str]:
        """:returns: the ids of this home's containers."""
        filters = quote(json.dumps({"label": [f"ironcurtain.home={self.product.home}", SESSION_LABEL]}))
        [found] = engine.call("GET", f"/containers/json?all=1&filters={filters}")
        return {container["Id"] for container in found}

    def test_what_a_dead_daemon_left_is_removed(self) -> None:
        living, left = self.container("living", alive=True), self.container("dead", alive=False)
        daemon = self.begin(**engine.environment())
        self.heard("READY")
        deadline = time.monotonic() + PATIENCE
        while left in self.there() and time.monotonic() < deadline:
            time.sleep(0.05)
        self.assertEqual(self.there(), {living})
        self.assert_quiet(daemon)

    def test_without_an_engine_nothing_is_said(self) -> None:
        for host in (f"unix://{self.product.person}/nothing.sock", "tcp://127.0.0.1:1"):
            daemon = self.begin(DOCKER_HOST=host)
            self.heard("READY")
            self.assert_quiet(daemon)

    def assert_quiet(self, daemon: Command) -> None:
        """End a daemon, which must not have spoken of anything wrong."""
        daemon.terminate()
        status, out = self.ended(daemon)
        self.assertEqual(status, -signal.SIGTERM)
        for word in ("Engine", "Traceback", "Unhandled"):
            self.assertNotIn(word, out)
