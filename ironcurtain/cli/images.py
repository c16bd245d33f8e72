"""``ironcurtain images``."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from ironcurtain.audit.chain import timestamp
from ironcurtain.cli.completion import in_containers
from ironcurtain.cli.output import as_json, home, print_json, print_lines, print_table, settings
from ironcurtain.cli.paths import UserPath
from ironcurtain.home.agent_names import marked
from ironcurtain.text.display import ago, one_line

if TYPE_CHECKING:
    from ironcurtain.container.image_update import Move
    from ironcurtain.container.images import AgentImage, AgentImages
    from ironcurtain.container.published_images import PublishedImages

MEGABYTE = 1_000_000
"""In the Engine's units."""

PROBLEM_LIMIT = 1000
"""Maximum length in characters of the problem of a package's image."""


@click.group()
def images() -> None:
    """
    Build and manage the agents' container images.

    They are built when first needed, so you need not run this before "ironcurtain start --agent".
    """


@images.command()
@click.argument("agents", metavar="[AGENT]...", nargs=-1, shell_complete=in_containers)
def build(agents: tuple[str, ...]) -> None:
    """
    Build the outdated and missing images of these agents, or of all.
    """
    from ironcurtain.cli.run import run
    from ironcurtain.container.image_choices import load_recipes

    recipes = load_recipes(home())
    for agent in agents:
        recipes.check(agent)

    async def main(reactor: Any) -> None:
        ours = _images(reactor)
        possible = [image.agent for image in await ours.states() if image.state not in ("no release", "broken")]
        for agent in agents or possible:
            click.echo(await ours.ensure(agent, _progress))

    run(main)


@images.command("list")
@as_json
def list_(json_output: bool) -> None:
    """
    Show each agent's image, and whether it is up to date.
    """
    from ironcurtain.cli.run import run

    async def main(reactor: Any) -> list[AgentImage]:
        return [*await _images(reactor).states(), *await _published_states(reactor)]

    found = run(main)
    if json_output:
        print_json(
            [
                msgspec.structs.asdict(each) | {"created": timestamp(each.created) if each.created else None}
                for each in found
            ]
        )
        return
    now = time.time()
    rows = [
        (
            marked(image.agent),
            f"{image.state}: {one_line(image.project)}" if image.project else image.state,
            image.version,
            f"{image.size / MEGABYTE:.0f} MB" if image.size else "",
            ago(now - image.created) if image.created else "",
            image.reference,
        )
        for image in found
    ]
    print_table(("AGENT", "STATE", "VERSION", "SIZE", "AGE", "IMAGE"), rows)
    for image in found:
        if image.problem:
            print_lines(f"{marked(image.agent)}: {one_line(image.problem, PROBLEM_LIMIT)}", err=True)


@images.command()
@click.argument("references", metavar="[NAME@sha256:DIGEST]...", nargs=-1)
def pull(references: tuple[str, ...]) -> None:
    """
    Pull published images of agents, or all that config.toml names.

    An agent of config.toml's "image" runs in it, and none is built. Other images are only pulled and recorded.
    """
    from ironcurtain.cli.run import run

    wanted = references or _configured()
    if not wanted:
        raise click.UsageError("config.toml names no published image: give NAME@sha256:DIGEST")

    async def main(reactor: Any) -> None:
        published = _published(reactor)
        for reference in wanted:
            image = await published.pull(reference)
            click.echo(f"{marked(image.agent)} {image.version}: {image.reference}")

    run(main)


@images.command()
@click.argument("name")
def digest(name: str) -> None:
    """
    Show what the tag NAME of an image stands for now.

    The answer is what "image" in config.toml takes.
    """
    from ironcurtain.cli.run import run

    click.echo(run(lambda reactor: _published(reactor).pinned(name)))


@images.command()
@click.argument("directory", type=UserPath(), default=".")
@click.option("--agree/--refuse", default=None, help="Answer at once, instead of being asked.")
def project(directory: Path, agree: bool | None) -> None:
    """
    Show what a project says about its containers, and decide.

    The project in DIRECTORY says so in a devcontainer.json, or in the Dockerfile that config.toml names. What its
    containers stand on, and the commands to run in agents' sandboxes, are two questions. Your answers hold until
    any of it changes.
    """
    from ironcurtain.cli.project_questions import decide_commands, decide_image, find

    asked = find(directory)
    says = [decide_image(asked, agree), decide_commands(asked, agree)]
    if not any(says):
        print_lines(
            "The project says nothing about its containers, or is not asked, since config.toml (devcontainer = false, "
            "base or dockerfile) or IRONCURTAIN_IMAGES_BASE decides."
        )


@images.command()
@as_json
def prune(json_output: bool) -> None:
    """
    Remove IronCurtain's outdated images.
    """
    from ironcurtain.cli.run import run

    pruned = run(lambda reactor: _images(reactor).prune())
    if json_output:
        print_json(pruned)
        return
    for name in pruned.removed:
        click.echo(f"removed  {name}")
    for name in pruned.in_use:
        click.echo(f"in use   {name}")
    if not pruned.removed and not pruned.in_use:
        click.echo("Nothing to remove.")


@images.command()
@click.argument("names", metavar="[AGENT | base]...", nargs=-1, shell_complete=in_containers)
@as_json
def update(names: tuple[str, ...], json_output: bool) -> None:
    """
    Choose the newest releases of these agents, or of all.

    "base" stands for Debian's packages in the base image. This builds nothing: run "ironcurtain images build", or the
    next "ironcurtain start --agent".
    """
    from ironcurtain.cli.run import run
    from ironcurtain.container.engine import Engine
    from ironcurtain.container.image_choices import choose, find_choices, load_recipes
    from ironcurtain.container.image_update import Updates

    where = home()
    where.prepare()
    recipes, choices = load_recipes(where), find_choices(os.environ, settings(where).settings.container)
    moves = run(lambda reactor: Updates(Engine.find(reactor, os.environ), recipes, choices).find(names, _progress))
    choose(where, [move.release for move in moves if move.release])
    if json_output:
        print_json([_described(move) for move in moves])
    for move in () if json_output else moves:
        click.echo(f"{marked(move.name)}: {_outcome(move)}")
    if any(move.problem for move in moves):
        raise SystemExit(1)


def _described(move: Move) -> dict[str, str]:
    after = move.release.version if move.release else move.before
    return {"name": move.name, "before": move.before, "after": after, "problem": move.problem}


def _outcome(move: Move) -> str:
    if move.release is None:
        return f"stays at {move.before or 'no release'}: {move.problem}"
    if move.release.version == move.before:
        return f"{move.before} is the newest"
    return f"{move.before or 'no release'} -> {move.release.version}"


def _images(reactor: Any) -> AgentImages:
    from ironcurtain.container.engine import Engine
    from ironcurtain.container.image_choices import find_choices, load_recipes
    from ironcurtain.container.images import AgentImages

    where = home()
    choices = find_choices(os.environ, settings(where).settings.container)
    return AgentImages(Engine.find(reactor, os.environ), load_recipes(where), choices)


def _published(reactor: Any) -> PublishedImages:
    from ironcurtain.container.engine import Engine
    from ironcurtain.container.image_choices import load_recipes
    from ironcurtain.container.published_images import PublishedImages

    return PublishedImages(Engine.find(reactor, os.environ), home(), load_recipes(home()).agents)


def _configured() -> tuple[str, ...]:
    """:returns: the published images that the settings name, for all projects."""
    container = settings(home()).settings.container
    named = [*container.images, *(image for each in container.projects.values() for image in each.images)]
    return tuple(dict.fromkeys(named))


async def _published_states(reactor: Any) -> list[AgentImage]:
    """:returns: the published images that were pulled, or that the settings name."""
    from ironcurtain.container.images import AgentImage

    published = _published(reactor)
    known, found = published.known(), list[AgentImage]()
    for reference in dict.fromkeys([*known, *_configured()]):
        image = await published.have(reference)
        of = image or known.get(reference)
        state, agent, version = "pulled" if image else "not pulled", of.agent if of else "", of.version if of else ""
        size, when = (image.size, int(image.pulled)) if image else (0, 0)
        found.append(AgentImage(agent, state, version, reference, size, when))
    return found


def _progress(line: str) -> None:
    print_lines(line, err=True)
