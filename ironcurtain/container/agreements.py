"""What persons said about what projects say: kept by path of the project, each for one content."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from ironcurtain.errors import ConfigurationError
from ironcurtain.files.atomic import write_atomically
from ironcurtain.home.layout import Home, private_directory, read_configuration

ABSENT = "absent"
"""In place of a digest: the project had no ``devcontainer.json``."""


class Answer(NamedTuple):
    """
    What a person said.

    :ivar digest: of what they were shown.
    """

    digest: str
    agreed: bool


class Agreement(msgspec.Struct, frozen=True, omit_defaults=True):
    """
    What a person said about one project.

    :param digest: of all that an image would be built from, or :data:`ABSENT`; empty: nothing was said about it.
    :param commands: digest of what is run in the project's sandboxes; empty: nothing was said about it.
    """

    digest: str = ""
    agreed: bool = False
    commands: str = ""
    run: bool = False

    @property
    def image(self) -> Answer | None:
        """What was said about the image; ``None``: nothing."""
        return Answer(self.digest, self.agreed) if self.digest else None


class Agreements:
    """The file with all of them."""

    def __init__(self, home: Home) -> None:
        self._file = home.path / "images" / "projects.json"

    def of(self, project: str) -> Agreement:
        """
        :param project: real path.
        :raises ConfigurationError: the file is not what was written.
        """
        return self._read().get(project, Agreement())

    def set_image(self, project: str, answer: Answer) -> None:
        """Keep what was said about a project's image."""
        self._write(project, msgspec.structs.replace(self.of(project), digest=answer.digest, agreed=answer.agreed))

    def set_commands(self, project: str, answer: Answer) -> None:
        """Keep what was said about a project's commands."""
        self._write(project, msgspec.structs.replace(self.of(project), commands=answer.digest, run=answer.agreed))

    def _read(self) -> dict[str, Agreement]:
        text = read_configuration(self._file)
        if text is None:
            return {}
        try:
            return msgspec.json.decode(text, type=dict[str, Agreement])
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as e:
            raise ConfigurationError(str(self._file), f"is not what IronCurtain writes: {e}; remove it") from None

    def _write(self, project: str, agreement: Agreement) -> None:
        private_directory(self._file.parent)
        write_atomically(self._file, msgspec.json.format(msgspec.json.encode({**self._read(), project: agreement})))
