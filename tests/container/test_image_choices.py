from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.container.image_choices import (
    Choices,
    choose,
    find_choices,
    load_programs,
    load_recipes,
    shipped_programs,
    versions_path,
)
from ironcurtain.container.versions import Release
from ironcurtain.errors import ConfigurationError
from ironcurtain.home.container_section import ContainerSettings
from ironcurtain.home.layout import Home

SUM = "sha512-" + "D" * 86 + "=="
PEM = "-----BEGIN CERTIFICATE-----\nAA==\n-----END CERTIFICATE-----\n"


SETTINGS = ContainerSettings(languages=())


class Case(SynchronousTestCase):
    def setUp(self) -> None:
        self.directory = Path(tempfile.mkdtemp(prefix="ic-"))
        self.addCleanup(shutil.rmtree, self.directory)

    def file(self, text: str) -> str:
        """:returns: the path of a new file."""
        path = self.directory / "file"
        path.write_text(text)
        return str(path)


class ChoicesTests(Case):
    def test_without_a_word_all_is_as_usual(self) -> None:
        self.assertEqual(find_choices({}, SETTINGS), Choices("", "default", "", b""))

    def test_the_environment_chooses(self) -> None:
        environ = {
            "IRONCURTAIN_IMAGES_BASE": "debian:12",
            "IRONCURTAIN_IMAGES_NETWORK": "host",
            "NPM_CONFIG_REGISTRY": "https://registry.example/npm/",
            "NODE_EXTRA_CA_CERTS": self.file(PEM),
        }
        self.assertEqual(
            find_choices(environ, SETTINGS), Choices("debian:12", "host", "https://registry.example/npm/", PEM.encode())
        )

    def test_the_settings_choose_base_and_languages_unless_the_environment_does(self) -> None:
        settings = ContainerSettings(base="debian:12", languages=("rust",))
        self.assertEqual(find_choices({}, settings), Choices("debian:12", languages=("rust",)))
        environ = {"IRONCURTAIN_IMAGES_BASE": "debian:13", "IRONCURTAIN_IMAGES_LANGUAGES": "go cpp"}
        self.assertEqual(find_choices(environ, settings), Choices("debian:13", languages=("go", "cpp")))
        self.assertEqual(find_choices({"IRONCURTAIN_IMAGES_LANGUAGES": ""}, settings).languages, ())

    def test_npms_own_certificates_come_first(self) -> None:
        environ = {"npm_config_cafile": self.file(PEM), "NODE_EXTRA_CA_CERTS": "/nonexistent"}
        self.assertEqual(find_choices(environ, SETTINGS).certificates, PEM.encode())

    def test_secrets_do_not_get_into_builds(self) -> None:
        for environ in (
            {"NPM_CONFIG_REGISTRY": "https://me:secret@registry.example/"},
            {"npm_config_registry": "https://token@registry.example/"},
            {"NPM_CONFIG_REGISTRY": "https://registry.example/?token=secret"},
            {"NODE_EXTRA_CA_CERTS": self.file(PEM + "-----BEGIN PRIVATE KEY-----\nsecret\n")},
        ):
            refused = self.assertRaises(ConfigurationError, find_choices, environ, SETTINGS)
            self.assertNotIn("secret", str(refused))

    def test_what_cannot_be_used_is_refused_with_the_variables_name(self) -> None:
        for variable, value in (
            ("IRONCURTAIN_IMAGES_NETWORK", "none"),
            ("IRONCURTAIN_IMAGES_LANGUAGES", "go cobol"),
            ("NPM_CONFIG_REGISTRY", "registry.example"),
            ("NODE_EXTRA_CA_CERTS", "/nonexistent/file"),
            ("NODE_EXTRA_CA_CERTS", "/"),
            ("NPM_CONFIG_CAFILE", self.file("nothing")),
        ):
            refused = self.assertRaises(ConfigurationError, find_choices, {variable: value}, SETTINGS)
            self.assertIn(variable, str(refused))


class HomeTests(Case):
    def setUp(self) -> None:
        super().setUp()
        self.home = Home(self.directory / "home", self.directory / "run")
        self.home.prepare()

    def test_a_home_that_chooses_nothing_has_what_was_shipped(self) -> None:
        self.assertEqual(load_programs(self.home), shipped_programs())

    def test_choices_add_up(self) -> None:
        choose(self.home, [Release("codex", "9.0.0", {"amd64": SUM})])
        choose(self.home, [Release("goose", "8.0.0", {"amd64": SUM})])
        programs = load_recipes(self.home).programs
        self.assertEqual((programs["codex"].version, programs["goose"].version), ("9.0.0", "8.0.0"))
        self.assertEqual(programs["opencode"], shipped_programs()["opencode"])

    def test_to_choose_what_was_shipped_is_to_choose_nothing(self) -> None:
        shipped = shipped_programs()["codex"]
        choose(self.home, [Release("codex", "9.0.0", {"amd64": SUM})])
        choose(self.home, [Release("codex", shipped.version, shipped.integrity)])
        self.assertNotIn("codex", versions_path(self.home).read_text())

    def test_a_wrong_file_is_not_overwritten(self) -> None:
        path = versions_path(self.home)
        path.parent.mkdir()
        path.write_text("[codex]\nversion = 1\n")
        self.assertRaises(ConfigurationError, choose, self.home, [Release("codex", "9.0.0", {"amd64": SUM})])
        self.assertEqual(path.read_text(), "[codex]\nversion = 1\n")
