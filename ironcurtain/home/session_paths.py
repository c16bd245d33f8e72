"""The paths of one session: its files below the home, and its sockets."""

from __future__ import annotations

from pathlib import Path

import msgspec


class SessionPaths(msgspec.Struct, frozen=True):
    """The files of one session. The agent can access only ``sandbox`` and ``home``."""

    directory: Path

    @property
    def sandbox(self) -> Path:
        """The workspace, unless the user gave another one."""
        return self.directory / "sandbox"

    @property
    def escalations(self) -> Path:
        """Requests and responses for other programs."""
        return self.directory / "escalations"

    @property
    def audit(self) -> Path:
        """The audit log."""
        return self.directory / "audit.jsonl"

    @property
    def log(self) -> Path:
        """The log for people."""
        return self.directory / "session.log"

    @property
    def history(self) -> Path:
        """The turns: messages and answers."""
        return self.directory / "history.jsonl"

    @property
    def conversation(self) -> Path:
        """All that the built-in agent and its model said and did, as it happened."""
        return self.directory / "conversation.jsonl"

    @property
    def agent_policies(self) -> Path:
        """What the agent of a shell and those above it may do and use, for agents that it starts."""
        return self.directory / "agent-policies.json"

    @property
    def used_below(self) -> Path:
        """What these used, by their own words."""
        return self.directory / "used-below.jsonl"

    @property
    def snapshot(self) -> Path:
        """The session's description: kind, label, state, workspace."""
        return self.directory / "session.json"

    @property
    def lock(self) -> Path:
        """Held by the process in which the session runs."""
        return self.directory / "session.lock"

    @property
    def trusted_input(self) -> Path:
        """The user's own words: messages, and lines typed in the terminal."""
        return self.directory / "trusted-input.jsonl"

    @property
    def user_context(self) -> Path:
        """The recent ones, written when an escalation needs them."""
        return self.directory / "user-context.json"

    @property
    def agent_home(self) -> Path:
        """The home directory of an agent in a container, kept between containers."""
        return self.directory / "home"

    @property
    def agent_conversation(self) -> Path:
        """The id of the conversation of an agent in a container, as its program names it."""
        return self.directory / "agent-conversation"

    @property
    def project_commands(self) -> Path:
        """The digest of the project's commands for a new container that were run in this session."""
        return self.directory / "project-commands"

    @property
    def recording(self) -> Path:
        """The recording of the agent's terminal."""
        return self.directory / "recording.cast"

    @property
    def loop(self) -> Path:
        """The state of a loop."""
        return self.directory / "loop.json"

    @property
    def iterations(self) -> Path:
        """The output of each iteration of a loop, and the events for the next one."""
        return self.directory / "iterations"

    @property
    def orientation(self) -> Path:
        """The orientation for an agent in a container, read-only for it."""
        return self.directory / "orientation"

    @property
    def shared(self) -> Path:
        """Copies of the user's own files for an agent, each mounted read-only."""
        return self.directory / "shared"

    @property
    def users(self) -> Path:
        """The ``passwd`` and ``group`` of a container."""
        return self.directory / "users"

    @property
    def manifest(self) -> Path:
        """The list of files in the workspace when the session first started."""
        return self.directory / "manifest.jsonl"

    @property
    def originals(self) -> Path:
        """Copies of files of the workspace at that time."""
        return self.directory / "originals"

    @property
    def repository_manifest(self) -> Path:
        """The list of a git repository's files that git runs or obeys, if the workspace's repository is elsewhere."""
        return self.directory / "repository.jsonl"

    @property
    def repository_originals(self) -> Path:
        """Copies of these files."""
        return self.directory / "repository-originals"

    @property
    def snapshots(self) -> Path:
        """The workspace before each of the last turns."""
        return self.directory / "snapshots"

    @property
    def findings(self) -> Path:
        """Files in the workspace to review, found when the session last ended."""
        return self.directory / "findings.json"


class RunPaths(msgspec.Struct, frozen=True):
    """The sockets of one session with a container; removed when it ends."""

    directory: Path

    @property
    def agent(self) -> Path:
        """The directory mounted into the container: the sockets of the two proxies."""
        return self.directory / "agent"

    @property
    def host(self) -> Path:
        """The directory that the container must never see."""
        return self.directory / "host"

    @property
    def stream_socket(self) -> Path:
        """The terminal's socket, for viewers in other processes."""
        return self.host / "stream.sock"

    @property
    def proxy_socket(self) -> Path:
        """The MCP proxy's socket."""
        return self.agent / "proxy.sock"

    @property
    def mitm_socket(self) -> Path:
        """The MITM proxy's socket."""
        return self.agent / "mitm-proxy.sock"
