"""The ids of IronCurtain's own agent programs, for what needs no more of them: importing them all is slow."""

from __future__ import annotations

OWN_AGENTS = ("claude-code", "codex", "gemini", "goose", "opencode")
