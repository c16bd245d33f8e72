"""``ironcurtain policy compile``."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ironcurtain.cli.backends import BackendOption
from ironcurtain.cli.output import home, print_lines, settings
from ironcurtain.cli.paths import UserPath
from ironcurtain.cli.policy_engine import engine_for, policy_option, servers_option, tool_files
from ironcurtain.text.quantities import counted

if TYPE_CHECKING:
    from ironcurtain.policy.annotations import Annotations
    from ironcurtain.policy.engine import PolicyEngine
    from ironcurtain.policy.rules import Policy, Rule
    from ironcurtain.policy_compiler.parts import Part, ServerTools
    from ironcurtain.session.tool_files import ToolFiles

PROPOSAL = Path("proposed-policy.toml")
"""Where a proposal is written that nobody read yet."""


@click.command(name="compile")
@click.argument("constitution", type=UserPath())
@click.option("--out", type=UserPath(), help="Write the proposal to this file, and change nothing.")
@click.option("--model", help="The model, by its provider's name for it.")
@click.option(
    "--backend",
    type=BackendOption(),
    multiple=True,
    help="The model, as with 'ironcurtain start'. Repeated: the next one is asked where one cannot be reached.",
)
@policy_option
@servers_option
def compile_(
    constitution: Path,
    out: Path | None,
    model: str | None,
    backend: tuple[str, ...],
    policy_file: Path | None,
    servers_file: Path | None,
) -> None:
    """
    Turn the plain English in CONSTITUTION into proposed rules.

    A model proposes them, and you accept them one by one. It is asked about each configured server separately, and
    about rules that restrict all of them. Each sentence of the file becomes rules and scenarios. The engine judges the
    scenarios; where a verdict is not what the sentence demands, the model corrects its rules, a few times at most. It
    can only propose rules and missing annotations: no invariant, such as protected paths, can change.

    For a tool without annotation, the model proposes one, from the definition that is pinned ('ironcurtain tools');
    so start a session with a new server first. Existing annotations stay. A tool for which no annotation is valid
    gets none, so that you are asked about each of its calls.

    A rule may allow nothing without a bound: no role or tool with any value, no home directory or what contains it, no
    host whatever its name, and no decision in your place. Each rule must hold in a scenario of its sentence.

    On a terminal you see each annotation, and every difference from the present rules with its sentence, and answer
    y, n, or q to stop. What you accept is written to the policy file, after the denials with which it begins and before
    its other rules. Without a terminal, or with --out, the proposal is only written to a file (default:
    proposed-policy.toml), and nothing takes effect.

    Answers are kept and used again: a changed server is asked about alone, a changed CONSTITUTION for all servers.
    Exits with status 1 if the model proposed nothing valid for one of them, such as rules whose scenarios fail; its
    rules stay. So it does if there are no scenarios at all.
    """
    from ironcurtain.cli.policy_reading import tell
    from ironcurtain.errors import ConfigurationError
    from ironcurtain.home.layout import read_configuration
    from ironcurtain.policy_compiler.rounds import Compiled, GaveUp
    from ironcurtain.policy_compiler.sentences import SENTENCES_LIMIT, sentences
    from ironcurtain.text.display import has_hidden_text

    files = tool_files(policy_file, servers_file)
    policy = files.load_policy()
    if (text := read_configuration(constitution)) is None:
        raise ConfigurationError(str(constitution), "the file does not exist")
    if has_hidden_text(text):
        line = next(number for number, line in enumerate(text.splitlines(), 1) if has_hidden_text(line))
        raise ConfigurationError(str(constitution), "it has invisible characters: write it again by hand", line=line)
    if not 0 < len(found := sentences(text)) <= SENTENCES_LIMIT:
        raise ConfigurationError(str(constitution), f"it must have from 1 to {SENTENCES_LIMIT} sentences")
    servers = _servers(files, policy)
    parts = _compiled(found, servers, files, policy, model, backend)
    tell(parts, found)
    gave_up = [part for part in parts if isinstance(part.outcome, GaveUp)]
    if len(gave_up) < len(parts):
        if out is not None or not (sys.stdin.isatty() and sys.stdout.isatty()):
            _write(parts, out or PROPOSAL)
        else:
            _read(parts, servers, files, policy)
    tried = any(isinstance(part.outcome, Compiled) and part.outcome.proposal.scenarios for part in parts)
    if not (tried or gave_up):
        print_lines("no scenario was proposed, so that no rule could be tried", err=True)
    if gave_up or not tried:
        raise SystemExit(1)


def _servers(files: ToolFiles, policy: Policy) -> list[ServerTools]:
    """:returns: the configured servers with their annotations and pinned definitions."""
    from ironcurtain.home.user_paths import person_home
    from ironcurtain.mcp_proxy.pins import PinFiles
    from ironcurtain.policy.annotations import ServerAnnotations
    from ironcurtain.policy.pathmap import AGENT_WORKSPACE
    from ironcurtain.policy_compiler.parts import ServerTools

    known, pins = _known(policy).servers, PinFiles(home().tool_definitions, time.time)
    return [
        ServerTools(
            server.name,
            known.get(server.name, ServerAnnotations()),
            {name: pin.definition for name, pin in pins.of(server.name).read().items() if pin.definition is not None},
        )
        for server in files.load_servers(AGENT_WORKSPACE, person_home(os.environ, os.geteuid()), os.environ)
    ]


def _known(policy: Policy) -> Annotations:
    from ironcurtain.policy.loading import default_annotations

    return default_annotations().merged(policy.annotations)


def _compiled(
    sentences: Sequence[str],
    servers: Sequence[ServerTools],
    files: ToolFiles,
    policy: Policy,
    model: str | None,
    backend: Sequence[str],
) -> list[Part]:
    from msgspec.structs import replace

    from ironcurtain.cli.run import run
    from ironcurtain.home.user_paths import person_home
    from ironcurtain.http.upstream_proxies import UpstreamProxies
    from ironcurtain.policy.files import AssumedFiles
    from ironcurtain.policy.loading import default_annotations
    from ironcurtain.policy.pathmap import AGENT_WORKSPACE, PathMap
    from ironcurtain.policy.paths import Places
    from ironcurtain.policy_compiler.changes import in_force, written_by_hand
    from ironcurtain.policy_compiler.compiler import Compiler
    from ironcurtain.policy_compiler.proposal import Directories
    from ironcurtain.providers.model_choice import chosen_model
    from ironcurtain.secrets.redaction import Redactor

    values, where, others = settings(home()).settings, home(), written_by_hand(policy.rules)
    places = Places(PathMap(AGENT_WORKSPACE), person_home(os.environ, os.geteuid()))

    def engine_with(rules: tuple[Rule, ...], annotations: Annotations) -> PolicyEngine:
        tried = replace(policy, rules=in_force(rules, others), annotations=annotations.merged(policy.annotations))
        return engine_for(files, AGENT_WORKSPACE, policy=tried, view=AssumedFiles())

    async def main(reactor: Any) -> list[Part]:
        chosen = await chosen_model(
            values,
            backend,
            model or "",
            redactor=Redactor(),
            clock=reactor,
            reactor=reactor,
            proxies=UpstreamProxies(reactor, values.network, os.environ),
            environ=os.environ,
        )
        compiler = Compiler(
            sentences,
            default_annotations(),
            engine_with,
            chosen,
            Directories(places.home or "/", places.real),
            where.compiled,
            lambda said: print_lines(f"{said} ...", err=True),
        )
        return await compiler.compile(servers)

    return run(main)


def _write(parts: Sequence[Part], path: Path) -> None:
    from ironcurtain.files.atomic import write_atomically
    from ironcurtain.policy_compiler.changes import proposal_text
    from ironcurtain.policy_compiler.parts import proposed_annotations, proposed_rules

    rules, annotations = proposed_rules(parts), proposed_annotations(parts)
    write_atomically(path, proposal_text(rules, annotations).encode())
    proposed = f"{counted(len(rules), 'proposed rule')}, {counted(len(annotations.table()), 'annotation')}"
    print_lines(f"{path}: {proposed}; read them before you use them")


def _read(parts: Sequence[Part], servers: Sequence[ServerTools], files: ToolFiles, policy: Policy) -> None:
    """Show everything, and apply what the person accepts."""
    from ironcurtain.cli.policy_reading import Reading, read_annotations, read_changes
    from ironcurtain.policy_compiler.changes import changes, placed
    from ironcurtain.policy_compiler.parts import proposed_rules
    from ironcurtain.policy_compiler.rounds import Compiled

    reading, rules = Reading(), proposed_rules(parts)
    kept = [part.server for part in parts if not isinstance(part.outcome, Compiled)]
    annotations = read_annotations(reading, parts, servers)
    differing = changes(rules, policy.rules, kept)
    if not differing:
        print_lines("The policy has these rules already.")
    accepted = read_changes(reading, differing, _known(policy).merged(annotations), policy)
    if accepted or annotations.servers:
        _apply(files, placed(policy.rules, rules, accepted), annotations)
        changed = counted(len(accepted), "change of rules", "changes of rules")
        print_lines(f"{files.policy}: {changed}, {counted(len(annotations.table()), 'new annotation')}")


def _apply(files: ToolFiles, compiled: Sequence[Rule], annotations: Annotations) -> None:
    from ironcurtain.errors import ConfigurationError
    from ironcurtain.files.atomic import write_atomically
    from ironcurtain.home.layout import read_configuration
    from ironcurtain.policy.loading import DEFAULT_POLICY
    from ironcurtain.policy_compiler.changes import edited

    text = read_configuration(files.policy)
    if files.policy.suffix == ".json":
        raise ConfigurationError(str(files.policy), "a compiled policy in JSON is not changed: use --out")
    changed = edited(str(files.policy), DEFAULT_POLICY.read_text() if text is None else text, compiled, annotations)
    write_atomically(files.policy, changed.encode())
