"""Programs that install packages: how each of them is used in a project, in the words of a shell."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from twisted.trial.unittest import SkipTest

from tests.programs import program
from tests.registries.indexes import GO_HOST, Lie


@dataclass(frozen=True, slots=True)
class Manager:
    """
    One of them. Its scripts run in an empty directory, with the name of a package as ``$1``.

    :ivar registry: which registry it asks, by its name in the settings.
    :ivar programs: names of what it needs.
    :ivar install: installs the package, the newest version that there is.
    :ivar installed: what is there then, below the directory; ``{}`` stands for the name of the package.
    :ivar again: installs once more what the lock file in the directory says, or exactly version 1.0.0.
    :ivar publish: tries to publish something; empty: it cannot.
    :ivar silent: of which refusals it does not print the reason, which is in the session's log.
    :ivar own: what it may print of lies that it finds out by itself.
    :ivar left_out: what is not tried with it, since it takes seconds.
    """

    registry: str
    programs: tuple[str, ...]
    install: str
    installed: str
    again: str
    publish: str = ""
    silent: frozenset[str] = frozenset()
    own: Mapping[str, str] = field(default_factory=dict)
    left_out: frozenset[str] = frozenset()


UNUSABLE: Final = "no version that can be used|no wheel or source|no versions of|another version|only signed lists"
"""What is said of packages of which nothing is left."""

REFUSALS: Final[Mapping[str, str]] = {
    "fresh": "is too young",
    "locked": "is too young",
    "changed": "has the digest",
    "foreign": UNUSABLE,
    "tricky": f"{UNUSABLE}|has dots as a segment",
    "redirected": "is not on the public internet",
    "large": "is larger than 1 MB",
    "endless": "is larger than 1 MB",
    "denied": "is denied by",
    "publish": "open read-only|no rule is about it",
}
"""What is refused, and a part of the reason, as a regular expression. ``locked`` is a young version in a lock file."""

SLOW: Final = frozenset(("tricky", "large"))
"""Left out with programs that take half a second of a processor, as others of the same registry are tried with them."""

FILES: Final = frozenset(("locked", "changed", "redirected", "large", "endless"))
"""Where it is the file that is refused, not the metadata."""

LIES: Final = {lie.name.lower(): lie for lie in Lie if lie is not Lie.NONE}
"""What is wrong with a package, by its name."""


NODE: Final = """
printf '{"name":"project","version":"1.0.0","license":"MIT","dependencies":{"%s":"*"}}' "$1" > package.json
"""

PYTHON: Final = """
printf '[project]\\nname="project"\\nversion="1"\\nrequires-python=">=3.11"\\n' > pyproject.toml
printf 'dependencies=["%s"]\\n' "$1" >> pyproject.toml
"""

BARE: Final = "python3 -m venv --without-pip .venv; export POETRY_VIRTUALENVS_IN_PROJECT=true;"
"""An environment as poetry makes it, but in a quarter of the time."""

HOMELESS: Final = "echo home > .npmignore\n"
"""The home lies in the project, and what a program writes there while it packs the project would break that off."""

TOKEN: Final = f"{HOMELESS}echo '//registry.npmjs.org/:_authToken=token' > .npmrc\n"

MANAGERS: Final[Mapping[str, Manager]] = {
    "npm": Manager(
        "npm",
        ("node", "npm"),
        f"{NODE} npm install",
        "node_modules/{}/index.js",
        "rm -rf node_modules; npm ci",
        f"{NODE.replace('%s', 'example')} {TOKEN} npm publish",
        left_out=SLOW,
    ),
    "pnpm": Manager(
        "npm",
        ("node", "pnpm"),
        f"{NODE} pnpm install",
        "node_modules/{}/index.js",
        "rm -rf node_modules; pnpm install --frozen-lockfile",
        f"{NODE} {TOKEN} pnpm publish --no-git-checks",
        silent=frozenset(REFUSALS) - {"publish", "locked"},
    ),
    "yarn 1": Manager(
        "npm",
        ("node", "yarn1"),
        f"{NODE} yarn1 install --non-interactive",
        "node_modules/{}/index.js",
        "rm -rf node_modules; yarn1 install --non-interactive --frozen-lockfile",
        f"{NODE} {TOKEN} npm_config_registry=https://registry.npmjs.org yarn1 publish --non-interactive",
        silent=FILES,
        own={"endless": "Invalid tar header"},
        left_out=SLOW,
    ),
    "yarn 4": Manager(
        "npm",
        ("node", "yarn4"),
        f"{NODE} touch yarn.lock; echo 'nodeLinker: node-modules' > .yarnrc.yml; yarn4 install --no-immutable",
        "node_modules/{}/index.js",
        "rm -rf node_modules; yarn4 install --immutable",
        f"""
        {HOMELESS} {NODE} touch yarn.lock; sed -i s/publish/example/ package.json; yarn4 install
        YARN_NPM_AUTH_TOKEN=token yarn4 npm publish
        """,
        left_out=SLOW,
    ),
    "bun": Manager(
        "npm",
        ("bun",),
        f"{NODE} bun install",
        "node_modules/{}/index.js",
        "rm -rf node_modules; bun install --frozen-lockfile",
        f"{NODE} {TOKEN} bun publish",
        silent=frozenset(REFUSALS) - {"publish"},
    ),
    "pip": Manager(
        "pypi",
        ("pip",),
        'pip install --target installed "$1"',
        "installed/{}.py",
        'rm -rf installed; pip install --target installed "$1==1.0.0"',
    ),
    "uv": Manager(
        "pypi",
        ("uv",),
        f"{PYTHON} uv sync",
        ".venv/lib/python3*/site-packages/{}.py",
        "rm -rf .venv; uv sync --locked",
        """
        mkdir -p project-1; printf 'Metadata-Version: 2.1\\nName: project\\nVersion: 1\\n' > project-1/PKG-INFO
        tar czf project-1.tar.gz project-1; uv publish --token token project-1.tar.gz
        """,
        own={"endless": "Failed to read from zip file"},
    ),
    "poetry": Manager(
        "pypi",
        ("poetry",),
        f"{PYTHON} {BARE} poetry install --no-root",
        ".venv/lib/python3*/site-packages/{}.py",
        f"rm -rf .venv; {BARE} poetry sync --no-root",
        silent=frozenset(("fresh", "denied", "foreign", "tricky")),
        left_out=frozenset(("locked",)),  # it does not take a lock file for another project
    ),
    "cargo": Manager(
        "crates",
        ("cargo",),
        """
        printf '[package]\\nname="project"\\nversion="1.0.0"\\nedition="2021"\\n' > Cargo.toml
        printf '[dependencies]\\n%s="*"\\n' "$1" >> Cargo.toml
        mkdir -p src; touch src/lib.rs; cargo build
        """,
        "home/.cargo/registry/src/*/{}-1.0.0/src/lib.rs",
        "rm -rf target cargo; cargo build --locked",
    ),
    "go": Manager(
        "go",
        ("go",),
        f"""
        export GOMODCACHE=$PWD/modules GOFLAGS=-modcacherw GONOSUMDB={GO_HOST}
        printf 'module project\\n' > go.mod
        go get {GO_HOST}/"$1"@latest && rm -rf modules && go mod download
        """,
        f"modules/{GO_HOST}/{{}}@v1.0.0/one.go",
        f"""
        export GOMODCACHE=$PWD/modules GOFLAGS=-modcacherw GONOSUMDB={GO_HOST}
        rm -rf modules; go mod download
        """,
        own={"changed": "not a valid zip file"},
    ),
    "apt-get": Manager(
        "debian",
        ("apt-get",),
        """
        mkdir -p root/etc/apt/apt.conf.d root/etc/apt/preferences.d root/lists/partial root/var/log/apt
        mkdir -p root/var/lib/dpkg root/var/cache/apt/archives/partial
        touch root/var/lib/dpkg/status root/var/lib/dpkg/available
        echo 'deb [trusted=yes] http://deb.debian.org/debian stable main' > root/etc/apt/sources.list
        cat > apt.conf << END
        Dir "$PWD/root"; Dir::State::status "$PWD/root/var/lib/dpkg/status"; Dir::State::lists "$PWD/root/lists";
        APT::Architecture "amd64"; APT::Sandbox::User ""; Acquire::Languages "none";
        DPkg::Options:: "--force-not-root,script-chrootless,bad-path,architecture";
        DPkg::Options:: "--root=$PWD/root"; DPkg::Options:: "--log=$PWD/log";
END
        export APT_CONFIG=$PWD/apt.conf
        apt-get -qq update && apt-get install --yes "$1"
        """,
        "root/{}.txt",
        """
        sed -i "s#apt-get/[a-z]*/#apt-get/${PWD##*/}/#g" apt.conf
        export APT_CONFIG=$PWD/apt.conf
        rm root/*.txt; apt-get install --reinstall --yes "$1=1.0.0+x"
        """,
        own={"changed": "Hash Sum mismatch", "endless": "File has unexpected size"},
    ),
}
"""By name."""


def modules() -> Path:
    """:returns: where packages of npm are that tests run."""
    return Path(os.environ.get("IRONCURTAIN_TEST_NODE", "."), "node_modules")


def find_program(name: str) -> str:
    """
    Find one of the programs that managers need.

    :returns: its path.
    :raises SkipTest: it is not installed.
    """
    python = Path(os.environ.get("IRONCURTAIN_TEST_PYTHON", "."), "bin")
    places = {
        **dict.fromkeys(("node", "pnpm", "bun"), (modules() / ".bin" / name, "IRONCURTAIN_TEST_NODE")),
        "yarn1": (modules() / "yarn/bin/yarn.js", "IRONCURTAIN_TEST_NODE"),
        "yarn4": (modules() / "@yarnpkg/cli-dist/bin/yarn.js", "IRONCURTAIN_TEST_NODE"),
        **dict.fromkeys(("pip", "uv", "poetry"), (python / name, "IRONCURTAIN_TEST_PYTHON")),
    }
    if name not in places:
        return program(name)
    path, variable = places[name]
    if not path.exists():
        raise SkipTest(f"{name} is not installed ({variable} names no directory with it; .ci/run makes one)")
    return str(path.absolute())
