"""The plans of images: the files and arguments that each is built from, and its resulting name."""

from __future__ import annotations

import hashlib
import io
import re
import tarfile
from collections.abc import Iterable, Mapping

import msgspec
from msgspec.structs import replace

from ironcurtain.container.dockerfiles import Needs, marked_stages
from ironcurtain.container.versions import BASE, ImageProgram
from ironcurtain.errors import ConfigurationError, UsageError
from ironcurtain.home.agent_names import listed

_ARGUMENT = re.compile(r"^ARG\s+(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?:=(?P<default>\S*))?", re.MULTILINE)


DOWNLOADER = "downloader"
"""Image that downloads programs while others are built."""

PROJECT = "project"
"""Image that a project's Dockerfile describes, on which a base image stands."""

QUESTION = "question"
"""Image that is built to find the newest release of a program, and not kept."""

CERTIFICATES = "certificates.pem"
"""File of the downloader's archive: the additional certificates that this machine trusts."""

PREFIX = "ironcurtain/"
"""Prefix of the names of all IronCurtain images."""

NAME_LABEL, CONTENT_LABEL, VERSION_LABEL = "ironcurtain.image", "ironcurtain.content", "ironcurtain.version"
"""Labels of an image: its name, the digest of its content, the release of its program."""

PROJECT_LABEL = "ironcurtain.project"
"""Label of an image that was built for one project: its path."""

BUILD_LABEL = "ironcurtain.build"
"""
Label of temporary images, which are removed when a build ends. Its value begins with the name of the image that was
built.
"""

DOCKERFILE = "Dockerfile"

Folder = Mapping[str, bytes]
"""The files of one image: content by name."""

PACKAGE_ENDING = "_PACKAGE"
"""Suffixes of the build arguments for a program's release."""

LANGUAGES: Mapping[str, tuple[str, ...]] = {
    "cpp": ("build-essential", "cmake", "pkg-config"),
    "go": ("golang-go",),
    "jvm": ("default-jdk-headless", "maven"),
    "node": ("nodejs", "npm"),
    "python": ("python3-dev", "python3-pip", "python3-venv"),
    "rust": ("cargo-web|cargo",),  # that of Debian 12 cannot read the index that registries of crates have
}
"""The packages of Debian that a preset adds to the base image; of ``A|B``, the first one that there is."""

_DOWNLOADER = "DOWNLOADER"
_STAGE_MARK = f"ARG BUILD\nLABEL {BUILD_LABEL}=${{BUILD}}\n"


class PackageImage(msgspec.Struct, frozen=True):
    """
    An image of another package.

    :param version: version of that package.
    """

    files: Folder
    version: str


class Recipe(msgspec.Struct, frozen=True):
    """
    A Dockerfile of a project, read.

    :param path: its path, for people.
    :param files: the Dockerfile and what it copies.
    :param network: what its steps can reach.
    """

    path: str
    files: Folder
    needs: Needs
    network: str
    arguments: Mapping[str, str] = msgspec.field(default_factory=dict)
    target: str = ""


class Basis(msgspec.Struct, frozen=True):
    """
    What the image of an agent stands on.

    :param source: an image; empty: there is a recipe, or the usual one is used.
    :param languages: presets of packages.
    :param published: references to finished images, each of one agent.
    :param environment: variables for the agent's programs, for
        :func:`~ironcurtain.container.devcontainer.in_directory`.
    :param project: the path of the project whose own image this is; empty: it is that of all.
    :param words: what is used and what is not, in sentences.
    """

    source: str = ""
    recipe: Recipe | None = None
    languages: tuple[str, ...] = ()
    published: tuple[str, ...] = ()
    environment: Mapping[str, str] = msgspec.field(default_factory=dict)
    project: str = ""
    words: tuple[str, ...] = ()


class SourceImage(msgspec.Struct, frozen=True):
    """
    The parent of the base image.

    :param name: its name.
    :param id: id of its exact content.
    :param architecture: as Docker names it.
    :param has_triggers: whether the build of an image on it runs what it says (ONBUILD).
    """

    name: str
    id: str
    architecture: str
    has_triggers: bool = False


class ImagePlan(msgspec.Struct, frozen=True):
    """
    One image, built or not.

    :param repository: the name that all its versions share.
    :param arguments: build arguments.
    :param version: version of its program, for people.
    :param content: digest of everything that determines its content.
    :param network: what the steps of its build can reach; empty: as this machine's settings say.
    :param target: the stage that becomes the image; empty: the last one.
    :param project: path of the only project that uses it; empty: all do.
    :param file: path of its Dockerfile, if that is a person's own.
    """

    name: str
    repository: str
    files: Folder
    arguments: Mapping[str, str]
    version: str
    content: str
    network: str = ""
    target: str = ""
    project: str = ""
    file: str = ""

    @property
    def reference(self) -> str:
        """The image's full name, which depends on its content."""
        return f"{self.repository}:{self.content[:12]}"

    @property
    def downloads(self) -> bool:
        """Whether the downloader image is needed to build it."""
        return _DOWNLOADER in arguments(self.files[DOCKERFILE])

    @property
    def labels(self) -> dict[str, str]:
        """The image's labels."""
        labels = {NAME_LABEL: self.name, CONTENT_LABEL: self.content, VERSION_LABEL: self.version}
        return labels | ({PROJECT_LABEL: self.project} if self.project else {})

    def of(self, project: str) -> ImagePlan:
        """:returns: the same image, but as that of one project only; an empty path: of all."""
        if not project:
            return self
        return replace(self, project=project, content=content([], {"content": self.content, "project": project}))


class Recipes(msgspec.Struct, frozen=True):
    """
    The folders of all images, and the releases of programs in them.

    :param folders: by name.
    :param programs: by name.
    :param prefix: prefix of the names of the images; others are not IronCurtain's.
    :param packaged: the images of other packages, by name.
    :param broken: why other packages' images cannot be used, by name.
    """

    folders: Mapping[str, Folder]
    programs: Mapping[str, ImageProgram]
    prefix: str = PREFIX
    packaged: Mapping[str, PackageImage] = msgspec.field(default_factory=dict)
    broken: Mapping[str, str] = msgspec.field(default_factory=dict)

    @property
    def agents(self) -> tuple[str, ...]:
        """The names of the agents' images."""
        return tuple(sorted(set(self.folders) - {BASE, DOWNLOADER, QUESTION} | set(self.packaged)))

    @property
    def default_source(self) -> str:
        """The default parent of the base image."""
        return arguments(self.folders[BASE][DOCKERFILE])["BASE"]

    def check(self, agent: str) -> None:
        """
        :raises UsageError: there is no image of this name.
        :raises ConfigurationError: it belongs to another package, and cannot be used.
        """
        if agent in self.broken:
            raise ConfigurationError(f"image {agent}", self.broken[agent])
        if agent not in self.agents:
            raise UsageError(f"there is no image {agent!r}; there are: {listed(self.agents)}")

    def base(self, source: SourceImage, languages: Iterable[str] = ()) -> ImagePlan:
        """
        :param languages: presets of :data:`LANGUAGES`.
        :returns: the base image, the parent of all others.
        """
        files, program = self.folders[BASE], self.programs[BASE]
        given = program.arguments(source.architecture)
        if tools := [package for name in sorted(set(languages)) for package in LANGUAGES[name]]:
            given["TOOLS"] = " ".join(tools)
        values = {**given, "source": source.id, "architecture": source.architecture}
        given["BASE"] = source.name
        return ImagePlan(BASE, self._repository(BASE), files, given, program.version, content([files], values))

    def project(self, recipe: Recipe, sources: Iterable[SourceImage]) -> ImagePlan:
        """
        :param sources: the images that its stages stand on.
        :returns: the image that a project's Dockerfile describes.
        """
        values = {f"argument {name}": value for name, value in recipe.arguments.items()}
        values |= {f"image {image.name}": image.id for image in sources} | {"target": recipe.target}
        digest = content([recipe.files], values)
        stages = marked_stages(recipe.files[DOCKERFILE].decode(), _STAGE_MARK, recipe.target)
        files = {**recipe.files, DOCKERFILE: stages.encode()}
        name = self._repository(PROJECT)
        given, network, target = recipe.arguments, recipe.network, recipe.target
        return ImagePlan(PROJECT, name, files, given, "", digest, network, target, file=recipe.path)

    def downloader(self, base: ImagePlan, certificates: bytes) -> ImagePlan:
        """:returns: the downloader image."""
        files = {**self.folders[DOWNLOADER], CERTIFICATES: certificates}
        given, digest = {"BASE": base.reference}, content([files], {"base": base.content})
        return ImagePlan(DOWNLOADER, self._repository(DOWNLOADER), files, given, base.version, digest)

    def agent(self, name: str, base: ImagePlan, architecture: str) -> ImagePlan:
        """
        The sources of its programs do not count as content; their checksums do.

        :returns: the image of an agent.
        :raises UsageError: there is no image of this name.
        :raises ConfigurationError: it belongs to another package, and cannot be used.
        :raises NoRelease: a program in it has no release for this architecture.
        """
        self.check(name)
        files, programs = self._files(name), self.needed(name)
        given: dict[str, str] = {}
        for program in programs:
            given |= program.arguments(architecture)
        fetching = [self.folders[DOWNLOADER]] if _DOWNLOADER in arguments(files[DOCKERFILE]) else []
        digest = content([files, *fetching], {**given, "base": base.content})
        given["BASE"] = base.reference
        return ImagePlan(name, self._repository(name), files, given, self.version(name), digest)

    def version(self, agent: str) -> str:
        """:returns: version of an agent's image as it would be built, for people; empty if no release is chosen yet."""
        return self.packaged[agent].version if agent in self.packaged else self.needed(agent)[0].version

    def needed(self, agent: str) -> tuple[ImageProgram, ...]:
        """
        :returns: the programs in an agent's image, its own first: those that its Dockerfile requests. An image of
            another package may have none.
        :raises ConfigurationError: ``versions.toml`` lacks one.
        """
        return tuple(self._program(name) for name in program_names(arguments(self._files(agent)[DOCKERFILE])))

    def chosen(self, agents: Iterable[str]) -> tuple[ImageProgram, ...]:
        """:returns: the programs in these agents' images, each once."""
        found = {program.name: program for agent in agents for program in self.needed(agent)}
        return tuple(found.values())

    def _files(self, name: str) -> Folder:
        return self.packaged[name].files if name in self.packaged else self.folders[name]

    def _repository(self, name: str) -> str:
        return f"{self.prefix}{name}"

    def _program(self, name: str) -> ImageProgram:
        if name not in self.programs:
            raise ConfigurationError("versions.toml", "is missing", field=name)
        return self.programs[name]


def program_names(declared: Iterable[str]) -> list[str]:
    """
    :param declared: names of build arguments.
    :returns: names of the programs whose releases they request, in order.
    """
    names = (name.removesuffix(PACKAGE_ENDING) for name in declared if name.endswith(PACKAGE_ENDING))
    return [name.lower().replace("_", "-") for name in names]


def archive(files: Mapping[str, bytes]) -> bytes:
    """
    Pack files for the Engine.

    The archive depends on nothing else, so that the Engine's build cache works. A file that begins with ``#!`` is
    executable.

    :param files: content by path.
    """
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.USTAR_FORMAT) as packed:
        for name in sorted(files):
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(files[name]), 0o755 if files[name].startswith(b"#!") else 0o644
            packed.addfile(entry, io.BytesIO(files[name]))
        end = packed.offset + 2 * tarfile.BLOCKSIZE
    # Without the padding of the last record: the Engine does not read it, and while there is unread input it does not
    # notice that the client has disconnected.
    return buffer.getvalue()[:end]


def arguments(dockerfile: bytes) -> dict[str, str]:
    """:returns: the build arguments that a Dockerfile declares, with their defaults; empty if there is none."""
    return {found["name"]: found["default"] or "" for found in _ARGUMENT.finditer(dockerfile.decode())}


def content(folders: Iterable[Mapping[str, bytes]], values: Mapping[str, str]) -> str:
    """
    :param folders: the files that the image is built from.
    :param values: other values that determine it: build arguments, its parent.
    :returns: a hexadecimal digest, the same for the same content only.
    """
    digest = hashlib.sha256()
    for part in (*folders, {name: value.encode() for name, value in values.items()}):
        digest.update(len(part).to_bytes(8, "big"))
        for name in sorted(part):
            for piece in (name.encode(), part[name]):
                digest.update(len(piece).to_bytes(8, "big") + piece)
    return digest.hexdigest()
