"""
What an agent finds around its workspace, in a container or a sandbox of bubblewrap: its own files, certificates, the
workspace's git repository if it is elsewhere, git's identity, and instructions of the person.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress

from ironcurtain.agents import adapter as common
from ironcurtain.agents.adapter import COMPILE_CACHE, HOME, Adapter, Facts, compiling, shareables
from ironcurtain.container.own_path import workspace_places
from ironcurtain.container.spec import Mount, repository_mounts
from ironcurtain.container_agent.provision import BUNDLE_NAME, TRUST_STORE_NAME, Placer, prepare, repository_files
from ironcurtain.container_agent.sharing import Found, chosen, collect, joined_text, sentences, stage
from ironcurtain.errors import UsageError
from ironcurtain.home.sections import NamedAgent
from ironcurtain.home.user_paths import person_home
from ironcurtain.sandbox.certificates import bundle, java_trust_store
from ironcurtain.sandbox.linked_repository import LinkedRepository, linked_repository, settings_variables
from ironcurtain.session import events
from ironcurtain.session.git_identity import commit_variables
from ironcurtain.session.parts import Core
from ironcurtain.session.tools import session_protected

CA_NAME = "ca.pem"
"""The certificate to trust, below the orientation's directory: see :data:`ironcurtain.agents.adapter.CA_FILE`."""


class Surroundings:
    """
    :param environ: the environment of this process.
    """

    def __init__(self, adapter: Adapter, environ: Mapping[str, str]) -> None:
        self._adapter, self._environ = adapter, environ

    def make(self, core: Core, authority: bytes) -> tuple[dict[str, str], tuple[Mount, ...]]:
        """
        Make a session's directories and files.

        :param authority: the certificate to trust, as PEM.
        :returns: the environment of all the agent's programs, and further mounts.
        """
        prepare(core.paths, core.account)
        placer = _placer(core, "orientation")
        placer.place(CA_NAME, authority)
        _, trusted = bundle(authority)
        placer.place(BUNDLE_NAME, trusted)
        placer.place(TRUST_STORE_NAME, java_trust_store(trusted))
        found = _repository(core, session_protected(core, self._environ))
        repository = _repository_mounts(core, found, workspace_names(core))
        git = settings_variables() if repository else {}
        git |= commit_variables(self._environ, core.switched, str(core.workspace.resolve()), found)
        node = {} if compiling(self._adapter) is None else {COMPILE_CACHE: f"{HOME}/.cache/node-compile-cache"}
        return {**common.environment(), **node, **git}, (*repository, *self._share(core))

    def place(self, core: Core, facts: Facts) -> None:
        """Write the agent's own files."""
        for file in self._adapter.files(facts):
            _placer(core, file.place).place(file.path, file.content.encode(), replace=file.replace)

    def git_advice(self, core: Core) -> str:
        """:returns: what the agent should know of its git repository, as a line of Markdown; empty if there is none."""
        found = _repository(core, session_protected(core, self._environ))
        return "" if found is None else found.advice

    def instructions(self, core: Core) -> str:
        """:returns: texts of the person that follow the orientation; empty if there are none."""
        return joined_text(self._shared(core))

    def _shared(self, core: Core) -> list[Found]:
        settings = core.services.settings.agents.named.get(self._adapter.id, NamedAgent())
        return collect(person_home(self._environ, os.geteuid()), chosen(shareables(self._adapter), settings.share))

    def _share(self, core: Core) -> tuple[Mount, ...]:
        found = self._shared(core)
        for sentence in sentences(found):
            core.emit(events.Notice(text=sentence, routine=not sentence.startswith("not")))
        return stage(found, core.paths, core.account)


def workspace_names(core: Core) -> tuple[str, ...]:
    """:returns: the paths of the workspace in the agent's sandbox; it works at the first one."""
    return workspace_places(core.directory, str(core.workspace.resolve()) if core.request.workspace else "")


def _placer(core: Core, place: str) -> Placer:
    top = core.paths.agent_home if place == "home" else core.paths.orientation
    return Placer(top, core.account.uid, core.account.gid, writable=place == "home")


def _repository(core: Core, protected: Sequence[str]) -> LinkedRepository | None:
    """:returns: the workspace's git repository, if it is elsewhere and may be mounted."""
    with suppress(UsageError):  # the MCP proxy has told why
        return linked_repository(str(core.workspace.resolve()), protected)
    return None


def _repository_mounts(core: Core, found: LinkedRepository | None, places: Sequence[str]) -> tuple[Mount, ...]:
    if found is None:
        return ()
    try:
        return repository_mounts(found, repository_files(core.paths, found, places, str(core.workspace.resolve())))
    except UsageError as e:
        core.emit(events.Notice(text=str(e)))
        return ()
