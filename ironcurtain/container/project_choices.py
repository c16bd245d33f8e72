"""
Choose what the image of an agent stands on for one project: by the person's settings, and by what they let the project
say.

What a project says holds only as it was when a person agreed to it. Settings that name it count as agreement the first
time; agents can change it afterwards, so each change is asked about.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec
from msgspec.structs import replace

from ironcurtain.container.agreements import ABSENT, Agreements, Answer
from ironcurtain.container.build_context import read_below, read_context
from ironcurtain.container.devcontainer import PLACES, Devcontainer, below_project, read_devcontainer
from ironcurtain.container.dockerfiles import has_other_escape
from ironcurtain.container.image_choices import Choices
from ironcurtain.container.image_plans import DOCKERFILE, Basis, Recipe, content
from ironcurtain.errors import ConfigurationError, UsageError
from ironcurtain.home.container_section import ContainerSettings, Foundation, ProjectContainer
from ironcurtain.home.layout import Home, read_configuration
from ironcurtain.home.user_paths import user_path
from ironcurtain.text.decoding import decode_text
from ironcurtain.text.display import one_line, paragraphs


class Proposal(msgspec.Struct, frozen=True):
    """
    What a project says.

    :param file: the file that says it.
    :param basis: what would be used.
    :param digest: of all that this would be built from.
    :param configured: whether settings name it.
    :param described: its ``devcontainer.json``; ``None``: it is a Dockerfile.
    :param known: what a person said before; ``None``: nothing.
    """

    file: str
    basis: Basis
    digest: str
    configured: bool
    described: Devcontainer | None
    known: Answer | None

    @property
    def agreed(self) -> bool:
        """Whether it may be used."""
        return self.configured if self.known is None else self.known == Answer(self.digest, True)

    @property
    def open(self) -> bool:
        """Whether a person has to be asked."""
        return not self.agreed and self.known != Answer(self.digest, False)


class ProjectChoices:
    """
    :param choices: this machine's settings.
    :param environ: the environment, which overrides what images stand on.
    """

    def __init__(self, home: Home, settings: ContainerSettings, choices: Choices, environ: Mapping[str, str]) -> None:
        self._agreements, self._settings, self._choices = Agreements(home), settings, choices
        self._overridden = bool(environ.get("IRONCURTAIN_IMAGES_BASE"))
        self._languages_overridden = "IRONCURTAIN_IMAGES_LANGUAGES" in environ

    def choose(self, project: str) -> Basis:
        """
        :param project: real path of a workspace; empty: it belongs to the session, and only its agent wrote there.
        :returns: what is used for it now.
        :raises ConfigurationError: what the settings name cannot be used.
        :raises UsageError: it has changed since a person agreed to it.
        """
        own, usual = self._table(project), self._usual(project)
        if not project:
            return usual
        if (reason := self._unusable(project)) is not None:
            return replace(usual, words=(reason,))
        proposal = self.propose(project)
        if proposal is None:
            if own.devcontainer and not self._overridden and self._agreements.of(project).image is None:
                self._agreements.set_image(project, Answer(ABSENT, True))
            return usual
        if proposal.agreed:
            if proposal.known is None:
                self.answer(project, proposal, agreed=True)
            return proposal.basis
        if not proposal.open:
            return replace(usual, words=(f"{proposal.file} is not used, as you decided",))
        advice = f"look at it, and decide, with: ironcurtain images project {project}"
        if proposal.configured:
            raise UsageError(f"{proposal.file}, or what it copies, has changed since you agreed to it: {advice}")
        return replace(usual, words=(f"{proposal.file} is not used: {advice}",))

    def propose(self, project: str) -> Proposal | None:
        """
        :returns: what the project says; ``None`` if it says nothing, or nobody wants to know.
        :raises ConfigurationError: it cannot be used.
        """
        own = self._table(project)
        if own.dockerfile and not self._overridden and not own.base:
            return None if self._is_persons(own) else self._of_dockerfile(project, own)
        found = self.described(project)
        return None if found is None else self._of_devcontainer(project, *found, own)

    def described(self, project: str) -> tuple[str, Devcontainer] | None:
        """
        :returns: a project's ``devcontainer.json``, and what it says; ``None``: there is none, or it is not asked.
        :raises ConfigurationError: it is wrong.
        """
        own = self._table(project)
        if self._overridden or own.base or own.dockerfile or own.devcontainer is False:
            return None
        for place in PLACES:
            if (data := read_below(project, place)) is not None:
                file = f"{project}/{place}"
                return file, read_devcontainer(file, place, decode_text(file, data))
        return None

    def answer(self, project: str, proposal: Proposal, *, agreed: bool) -> None:
        """Keep what a person decided."""
        self._agreements.set_image(project, Answer(proposal.digest, agreed))

    def _unusable(self, project: str) -> str | None:
        """:returns: why a file that no setting names is not used, if it is wrong."""
        if self._table(project).chooses:
            return None
        try:
            self.propose(project)
        except ConfigurationError as e:
            return f"not used: {e}"
        return None

    def _table(self, project: str) -> Foundation:
        own = self._project_settings(project)
        return own if own.chooses else self._settings

    def _project_settings(self, project: str) -> ProjectContainer:
        for path, settings in self._settings.projects.items():
            if os.path.realpath(user_path(path)) == project:
                return settings
        return ProjectContainer()

    def _usual(self, project: str) -> Basis:
        """:returns: what the person's settings alone choose."""
        own, mine = self._table(project), self._project_settings(project)
        languages = self._choices.languages if mine.languages is None else mine.languages
        if self._languages_overridden:
            languages = self._choices.languages
        different = own is mine or languages != self._choices.languages
        basis = Basis(
            self._choices.source if self._overridden or not own.base else own.base,
            languages=languages,
            published=mine.images or self._settings.images,
            project=project if different and not self._overridden else "",
        )
        if own.dockerfile and self._is_persons(own) and not self._overridden:
            path = Path(user_path(own.dockerfile))
            text = read_configuration(path)
            if text is None:
                raise ConfigurationError(str(path), "does not exist")
            recipe = _recipe(str(path), str(path.parent), "", text, own.build_network)
            return replace(basis, source="", recipe=recipe)
        return basis

    def _is_persons(self, own: Foundation) -> bool:
        return own.dockerfile.startswith(("/", "~"))

    def _of_dockerfile(self, project: str, own: Foundation) -> Proposal:
        path = below_project("config.toml", "container.dockerfile", "", own.dockerfile)
        recipe = self._read_recipe(project, "", path, own)
        return self._proposal(project, f"{project}/{path}", replace(self._usual(project), recipe=recipe), None, own)

    def _of_devcontainer(self, project: str, file: str, found: Devcontainer, own: Foundation) -> Proposal:
        basis = replace(self._usual(project), source=found.image, environment=found.environment)
        if found.dockerfile:
            recipe = self._read_recipe(project, found.context, found.dockerfile, own)
            basis = replace(basis, recipe=replace(recipe, arguments=found.arguments, target=found.target))
        return self._proposal(project, file, basis, found, own)

    def _read_recipe(self, project: str, context: str, path: str, own: Foundation) -> Recipe:
        file = f"{project}/{path}"
        data = read_below(project, path)
        if data is None:
            raise ConfigurationError(file, "does not exist")
        return _recipe(file, project, context, decode_text(file, data), own.build_network)

    def _proposal(
        self, project: str, file: str, basis: Basis, described: Devcontainer | None, own: Foundation
    ) -> Proposal:
        recipe = basis.recipe
        values = {"source": basis.source, **{f"env {name}": value for name, value in basis.environment.items()}}
        if recipe is not None:
            values |= {"network": recipe.network, "target": recipe.target}
            values |= {f"arg {name}": value for name, value in recipe.arguments.items()}
        digest = content([recipe.files if recipe else {}], values)
        of = f"the image {basis.source}" if recipe is None else recipe.path
        words = [
            f"the container is built as {file} says, from {of}" if described else f"the container is built by {of}"
        ]
        if described is not None:
            words += [f"{file}: {sentence}" for sentence in described.left_out]
        made = replace(basis, source="" if recipe else basis.source, project=project, words=tuple(map(one_line, words)))
        return Proposal(file, made, digest, own.chooses, described, self._agreements.of(project).image)


def shown(proposal: Proposal) -> Sequence[str]:
    """:returns: all that a person agrees to, in lines."""
    basis, lines = proposal.basis, [f"{proposal.file} says what agents' containers of this project stand on:"]
    if basis.source:
        lines.append(f"  image: {basis.source}")
    lines += [f"  variable: {name}={value}" for name, value in basis.environment.items()]
    if (recipe := basis.recipe) is not None:
        network = "without a network" if recipe.network == "none" else "with this machine's network"
        lines += [f"  {recipe.path}, built {network}:"]
        lines += [f"    {line}" for line in recipe.files[DOCKERFILE].decode().split("\n")]
        lines += [f"  argument: {name}={value}" for name, value in recipe.arguments.items()]
        lines += [f"  stage: {recipe.target}"] if recipe.target else []
        copied = sorted(set(recipe.files) - {DOCKERFILE})
        lines += [f"  copies: {path} ({len(recipe.files[path])} bytes)" for path in copied]
    lines += [f"  {sentence.removeprefix(f'{one_line(proposal.file)}: ')}" for sentence in basis.words[1:]]
    return [paragraphs(line) for line in (*lines, f"  digest: {proposal.digest[:16]}")]


def _recipe(path: str, top: str, folder: str, text: str, network: str) -> Recipe:
    if has_other_escape(text):
        raise ConfigurationError(path, "has a directive escape, which is not supported: continue lines by a backslash")
    needs, files = read_context(top, folder, text)
    if not needs.stages:
        raise ConfigurationError(path, "is not a Dockerfile: it has no FROM")
    if needs.remote and network == "none":
        raise ConfigurationError(
            path,
            f"ADD {needs.remote[0]} needs a network, and its build has none: copy the file, or set "
            'build_network = "default" under [container] in config.toml',
        )
    return Recipe(path, {**files, DOCKERFILE: text.encode()}, needs, network)
