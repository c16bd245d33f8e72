"""``ironcurtain init``."""

from __future__ import annotations

import click

from ironcurtain.cli.output import home

CONFIG = """\
# Settings of IronCurtain. For the defaults of other settings, see 'ironcurtain config show'.
version = 1

[model]
# backend = "anthropic"  # or openai, google, openai-chat, scripted, subprocess
# name = "claude-opus-5-5"

[escalation]
# How long you have to answer, in seconds.
# timeout_seconds = 300

[budget]
# Limits of one session; without a value there is none.
# cost = 5.0

# Source of the real key: an environment variable, a command that prints it, or a file with mode 0600.
[providers.anthropic]
# key = { env = "ANTHROPIC_API_KEY" }
# key = { command = "pass show anthropic" }
"""


@click.command()
def init() -> None:
    """
    Create the home directory with config.toml, policy.toml and mcp-servers.json.

    Existing files are kept. In a terminal, it asks whether your own SSH keys (~/.ssh/*.pub) may log in.
    """
    from ironcurtain.cli.own_keys import offer_own_keys
    from ironcurtain.files.atomic import publish_once
    from ironcurtain.policy.loading import DEFAULT_POLICY
    from ironcurtain.session.tool_files import default_servers

    where = home()
    where.prepare()
    where.check_writable()
    for path, text in (
        (where.config, CONFIG),
        (where.policy, DEFAULT_POLICY.read_text()),
        (where.mcp_servers, default_servers() + "\n"),
    ):
        made = publish_once(path, text.encode())
        click.echo(f"{'made ' if made else 'kept '} {path}")
    offer_own_keys(where)
    click.echo("Next: ironcurtain doctor")
