"""Every kind of file that people write, as editors of all systems save it, is read, or refused by its name."""

from __future__ import annotations

import base64
import codecs
import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.accounts.named_login import read_program_login
from ironcurtain.agents.adapter import Shareable
from ironcurtain.cli.shell_pipe import instructions_of
from ironcurtain.configuration import read_settings
from ironcurtain.container.docker_context import used_context
from ironcurtain.container.image_choices import find_choices
from ironcurtain.container.project_choices import ProjectChoices
from ironcurtain.container_agent.sharing import collect, joined_text
from ironcurtain.errors import IronCurtainError
from ironcurtain.fleet.joining import Credentials, read_credentials, trust
from ironcurtain.fleet.trust import read_trust
from ironcurtain.home.container_section import ContainerSettings, ProjectContainer
from ironcurtain.home.layout import Home, read_configuration
from ironcurtain.llm.script import load_script
from ironcurtain.loop.config import read_file
from ironcurtain.loop.state import read_prompt
from ironcurtain.mcp_proxy.download_hosts import uv_registries
from ironcurtain.operations import Role
from ironcurtain.policy.loading import load_policy
from ironcurtain.policy.scenarios import load_scenarios
from ironcurtain.servers.desktop.opening import find
from ironcurtain.session.tool_files import ToolFiles
from ironcurtain.watchers.config import load_watchers
from tests.audit.doubles import scratch

KEY = base64.b64encode(bytes(32)).decode()
CONTEXT = f".docker/contexts/meta/{hashlib.sha256('é'.encode()).hexdigest()}/meta.json"
CREDENTIALS = Credentials(host="laptop", servers=("tls://h:1",), password="é", certificate="", first=("a", KEY))
TWO_STAGES = "# é\nFROM debian:12\n\nCOPY . /x\n"
MEMORY = Shareable("memory", "AGENTS.md", joined=True)

AS_SAVED: dict[str, Callable[[str], bytes]] = {
    "UTF-8 with a byte order mark": lambda text: text.encode("utf-8-sig"),
    "UTF-8 with the line ends of Windows": lambda text: text.replace("\n", "\r\n").encode("utf-8-sig"),
    "UTF-16, little end first": lambda text: codecs.BOM_UTF16_LE + text.encode("utf-16-le"),
    "UTF-16, big end first": lambda text: codecs.BOM_UTF16_BE + text.encode("utf-16-be"),
    "UTF-16 without a mark": lambda text: text.encode("utf-16-le"),
    "Latin-1": lambda text: text.encode("latin-1"),
    "zeroes between": lambda text: text.replace("\n", "\0\n").encode(),
    "zeroes alone": lambda text: b"\0" * len(text),
    "half a character": lambda text: text.encode() + b"\xc3",
}


@dataclass(frozen=True)
class Kind:
    """
    A kind of file.

    :param place: of a file below a scratch directory, which is the person's home, the project and ours, too.
    :param text: which is right, and not only ASCII.
    :param read: what of ours reads it, given that directory.
    :param anyhow: whether it is read in every encoding, since a model reads it, or other programs wrote it.
    """

    place: str
    text: str
    read: Callable[[Path], Any]
    anyhow: bool = False


def choices(top: Path, dockerfile: str = "") -> ProjectChoices:
    """:returns: what decides about the images of the project."""
    own = ContainerSettings(projects={str(top): ProjectContainer(dockerfile=dockerfile)})
    return ProjectChoices(Home(top / "home", top / "run"), own, find_choices({}, own), {})


def built(top: Path) -> Any:
    """:returns: the files of the project's Dockerfile, but for that which says which of them are left out."""
    for name in ("seen", "hidden"):
        (top / name).write_text("")
    if not (top / "Dockerfile").exists():
        (top / "Dockerfile").write_text(TWO_STAGES)
    proposal = choices(top, "Dockerfile").propose(str(top))
    assert proposal is not None and proposal.basis.recipe is not None
    return {name: data for name, data in proposal.basis.recipe.files.items() if name != ".dockerignore"}


def trusted(top: Path) -> Any:
    """:returns: whom the file trusts, before and after a host is added."""
    home = Home(top, top / "run")
    before = read_trust(home.fleet_trust)
    if "other" not in before.hosts:
        trust(home, "other", base64.b64encode(bytes(31) + b"\1").decode(), {"*": [Role.VIEW]})
    return dict(before.hosts), dict(read_trust(home.fleet_trust).hosts)


def loop(top: Path) -> Any:
    """:returns: the settings of a loop."""
    return read_file(str(top / "loop.yml"), read_configuration(top / "loop.yml") or "")[0].values


KINDS = {
    "settings": Kind(
        "config.toml", "# é\nversion = 1\n[agent]\nmax_steps = 3\n", lambda top: read_settings(top / "config.toml", {})
    ),
    "policy": Kind(
        "policy.toml",
        'version = 1\n[[rules]]\nname = "a"\nthen = "deny"\nif = { server = ["s"] }\nreason = "é"\n',
        lambda top: load_policy(top / "policy.toml"),
    ),
    "servers": Kind(
        "mcp-servers.json",
        '{"mcpServers": {\n"a": {"command": "/bin/true", "args": ["é"]}}}\n',
        lambda top: ToolFiles(top / "mcp-servers.json", top / "policy.toml").load_servers("/x", "/h", {}),
    ),
    "scenarios": Kind(
        "scenarios.toml",
        'version = 1\n[[scenarios]]\nname = "é"\nserver = "a"\ntool = "b"\nexpect = "deny"\n',
        lambda top: load_scenarios(top / "scenarios.toml"),
    ),
    "watchers": Kind(
        "watchers.toml",
        'version = 1\n[watchers.a]\ntrigger = "file_change"\npath = "~/src"\ninstruction = "é"\n',
        lambda top: load_watchers(top / "watchers.toml", {"HOME": "/home/ada"}, lambda: ["builtin"]),
    ),
    "loop": Kind("loop.yml", "# é\nevent_loop:\n  max_iterations: 3\n", loop),
    "prompt of a loop": Kind("PROMPT.md", "é\nDo it.\n", lambda top: read_prompt("", top / "PROMPT.md", top), True),
    "script of a model": Kind(
        "script.toml", 'version = 1\n[[turns]]\ntext = "é"\n', lambda top: load_script(str(top / "script.toml"))
    ),
    "instructions of a shell": Kind("work.txt", "# é\n", lambda top: instructions_of(top / "work.txt")),
    "trust of a fleet": Kind(
        "fleet.trust", f'version = 1 # é\n[hosts.laptop]\nkey = "{KEY}"\npeople = {{ "*" = ["view"] }}\n', trusted
    ),
    "credentials of a fleet": Kind(
        "fleet.credentials",
        json.dumps({name: getattr(CREDENTIALS, name) for name in CREDENTIALS.__struct_fields__}, ensure_ascii=False),
        lambda top: read_credentials(top / "fleet.credentials"),
    ),
    "login of a program": Kind(
        ".credentials.json",
        '{"claudeAiOauth":\n{"accessToken": "sk-ant-oat01-x", "subscriptionType": "é"}}\n',
        lambda top: read_program_login("claude", top / ".credentials.json", str(top / ".credentials.json"), "linux"),
    ),
    "devcontainer": Kind(
        ".devcontainer.json",
        '// é\n{"image": "node:22",\n}\n',
        lambda top: choices(top).described(str(top)),
    ),
    "Dockerfile": Kind("Dockerfile", "# é\nFROM debian:12\nCOPY seen /x\n", built),
    "files that a Dockerfile ignores": Kind(".dockerignore", "hidden\né\n", built),
    "settings of uv": Kind(
        ".config/uv/uv.toml",
        'index-url = "https://b.example/x" # é\n',
        lambda top: uv_registries({"HOME": str(top)}),
    ),
    "settings of docker": Kind(
        ".docker/config.json", '{"currentContext":\n"é"}\n', lambda top: used_context({"HOME": str(top)})
    ),
    "memory that an agent shares": Kind(
        "AGENTS.md", "é\nBe brief.\n", lambda top: joined_text(collect(str(top), [MEMORY])), True
    ),
    "entry of an application": Kind(
        "a.desktop",
        "[Desktop Entry]\nType=Application\nName=é\nExec=program\n",
        lambda top: find("program", [str(top)]),
        True,
    ),
}
NOT_READ_BY_DOCKER = {"settings of docker"}
"""Programs of others refuse a byte order mark in these, so that we name it."""


class WrittenFileTests(SynchronousTestCase):
    def read(self, kind: Kind, data: bytes) -> Any:
        """:returns: what a file says, or the words in which it is refused."""
        top = scratch(self)
        for place, content in ((CONTEXT, b'{"Endpoints": {"docker": {"Host": "unix:///d"}}}'), (kind.place, data)):
            (top / place).parent.mkdir(parents=True, exist_ok=True)
            (top / place).write_bytes(content)
            (top / place).chmod(0o600)
        try:
            return repr(kind.read(top)).replace(str(top), "TOP")
        except IronCurtainError as e:
            self.assertTrue(kind.anyhow or Path(kind.place).name in str(e), e)
            return e

    def test_every_file_is_read_or_refused_by_name(self) -> None:
        for name, kind in KINDS.items():
            plain = self.read(kind, kind.text.encode())
            self.assertIsInstance(plain, str, f"{name}: {plain}")
            self.assertNotEqual(plain, self.read(kind, b""), f"{name}: its content makes no difference")
            for saved, encode in AS_SAVED.items():
                with self.subTest(f"{name}: {saved}"):
                    found = self.read(kind, encode(kind.text))
                    if (saved.startswith("UTF-8") and name not in NOT_READ_BY_DOCKER) or (
                        saved.startswith("UTF-16") and kind.anyhow
                    ):
                        self.assertEqual(found, plain)
                    elif saved.startswith(("UTF", "Latin", "half")) and not kind.anyhow:
                        self.assertIsInstance(found, IronCurtainError)
