"""
Build IronCurtain, install it where the checkout is not in sight, and use it. ``tox -e package`` runs this.

Needs the ``build`` package, and nothing of the test dependencies.
"""

from __future__ import annotations

import json
import os
import runpy
import shlex
import subprocess
import sys
import tempfile
import venv
import zipfile
from pathlib import Path

TOP = Path(__file__).parent.parent.parent

FOLDERS = TOP / "ironcurtain" / "container" / "data" / "images"
"""A link to the images' folder at the top; not every Python follows it in a glob."""

STEP_LIMIT = 300
"""Seconds for one step (installing over a slow network is the longest)."""

SHOW_IMAGES = """
from ironcurtain.container.image_choices import FOLDERS
print(*sorted(str(path.relative_to(FOLDERS)) for path in FOLDERS.rglob("*") if path.is_file()), sep="\\n")
"""

INSTALL = ("-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-compile")
"""Little of what is compiled at an installation would be run here."""

INSTALLER = Path(__file__).with_name("installer.py")

UV = TOP / ".venv-tox" / "bin" / "uv"
"""It lies there where ``make test`` could get it."""

IN_THE_WHEEL = ("ironcurtain/py.typed", "twisted/plugins/ironcurtain_plugin.py")
NOT_IN_THE_WHEEL = ("twisted/__init__.py", "twisted/plugins/__init__.py", "twisted/plugins/dropin.cache")


def run(*command: str | Path, cwd: Path, environ: dict[str, str] | None = None) -> str:
    """
    Run one command with nobody at the keyboard.

    :returns: what it printed.
    :raises SystemExit: it failed or took too long.
    """
    words = [str(word) for word in command]
    print("$", " ".join([Path(words[0]).name, *words[1:]]), flush=True)
    done = subprocess.run(
        words,
        cwd=cwd,
        env=environ,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=STEP_LIMIT,
    )
    if done.returncode:
        raise SystemExit(f"status {done.returncode}:\n{done.stdout}")
    return done.stdout


def demand(text: str, wanted: str) -> None:
    """:raises SystemExit: the text lacks what is wanted."""
    if wanted not in text:
        raise SystemExit(f"{wanted!r} is not in:\n{text}")


def build(directory: Path) -> tuple[Path, Path]:
    """:returns: the source distribution, and the wheel that was built from it."""
    run(sys.executable, "-m", "build", "--outdir", directory, TOP, cwd=directory)
    [wheel] = directory.glob("*.whl")
    [source] = directory.glob("*.tar.gz")
    return source, wheel


def reinstall(python: Path, directory: Path, *what: str | Path) -> None:
    """Install it in another way, over what is there."""
    run(python, *INSTALL, "--no-deps", "--force-reinstall", *what, cwd=directory)


def check_images(python: Path, directory: Path) -> None:
    """:raises SystemExit: started in this directory, the program does not find the files of the images."""
    found = run(python, "-c", SHOW_IMAGES, cwd=directory)
    wanted = sorted(str(path.relative_to(TOP / "images")) for path in (TOP / "images").rglob("*") if path.is_file())
    if found.split() != wanted:
        raise SystemExit(f"images are not found in {directory}: {found}")


def check_contents(wheel: Path) -> None:
    """:raises SystemExit: a file is missing in the wheel, or one is there that would break Twisted."""
    names = set(zipfile.ZipFile(wheel).namelist())
    data = {
        str(path.relative_to(TOP))
        for path in [*(TOP / "ironcurtain").glob("**/data/**/*"), *FOLDERS.rglob("*")]
        if path.is_file() and "__pycache__" not in path.parts
    }
    if missing := ({*IN_THE_WHEEL} | data) - names:
        raise SystemExit(f"not in the wheel: {sorted(missing)}")
    if wrong := ({*NOT_IN_THE_WHEEL} | {name for name in names if name.startswith("tests/")}) & names:
        raise SystemExit(f"must not be in the wheel: {sorted(wrong)}")


def use(wheel: Path, directory: Path) -> None:
    """
    Install the wheel with its run-time dependencies alone, and use every entrance.

    The dependencies come in the quickest way; then pip installs the wheel, and checks what it needs.
    """
    programs = directory / "environment" / "bin"
    venv.create(programs.parent, with_pip=True)
    run(programs / "python", "-I", INSTALLER, UV, wheel, cwd=directory)
    reinstall(programs / "python", directory, wheel)
    run(programs / "python", "-m", "pip", "check", cwd=directory)
    environ = use_programs(wheel, directory, programs, programs, "twistd")
    demand(run(programs / "ironcurtain", "--help", cwd=directory, environ=environ), "demo")


def use_programs(wheel: Path, directory: Path, at_hand: Path, programs: Path, twistd: str) -> dict[str, str]:
    """
    :param at_hand: the directory on the PATH, which has the ``ironcurtain`` that people start.
    :param programs: the directory with all programs of this installation.
    :param twistd: how people start that one.
    :returns: the environment in which all this was done.
    """
    environ = {
        "PATH": f"{at_hand}{os.pathsep}{os.environ['PATH']}",
        "HOME": str(directory),
        "IRONCURTAIN_HOME": str(directory / "home"),
        "LANG": "C.UTF-8",
    }
    ironcurtain = at_hand / "ironcurtain"
    demand(run(ironcurtain, "--version", cwd=directory, environ=environ), wheel.name.split("-")[1])
    found = run(ironcurtain, "doctor", "--json", cwd=directory, environ=environ)
    details = {finding["what"]: finding["detail"] for finding in json.loads(found)}
    demand(details["Python"], f"({programs / 'python'})")
    demand(details["MCP server filesystem"], f"{programs / 'python'},")
    demand(details["interpreter"], str(programs / "monty"))
    demand(details["daemon"], f"(start it with: {twistd} ironcurtain)")
    help_text = run("sh", "-c", f"{twistd} -n ironcurtain --help", cwd=directory, environ=environ)
    demand(help_text, "--home")
    demand(run(ironcurtain, "demo", "--yes", cwd=directory, environ=environ), "each chained to the one before: intact")
    return environ


def use_with_tools(wheel: Path, directory: Path) -> None:
    """Install the wheel as pipx and uv install programs, apart from each other, and use it."""
    tools = directory / "tools" / "bin"
    venv.create(tools.parent, with_pip=True)
    for package, words, variables, programs in (
        ("pipx>=1.8", ("pipx", "install"), ("PIPX_BIN_DIR", "PIPX_HOME"), "venvs/ironcurtain/bin"),
        ("uv>=0.13", ("uv", "tool", "install"), ("UV_TOOL_BIN_DIR", "UV_TOOL_DIR"), "ironcurtain/bin"),
    ):
        place = (directory / words[0]).resolve()
        at_hand, home = place / "at hand", place / "installed"
        settings = runpy.run_path(str(INSTALLER))["translated"](run(tools / "pip", "config", "list", cwd=directory))
        try:
            run(tools / "python", *INSTALL, package, cwd=directory)
        except SystemExit:
            settings = None
        if settings is None:
            print(f"Not tried: {' '.join(words)}, since {words[0]} is not to be had here as pip's settings have it.")
            if os.environ.get("CI"):
                raise SystemExit(1)
            continue
        environ = {**settings, **os.environ, variables[0]: str(at_hand), variables[1]: str(home)}
        run(tools / words[0], *words[1:], "--quiet", "--python", sys.executable, wheel, cwd=directory, environ=environ)
        twistd = shlex.quote(str(home / programs / "twistd"))
        use_programs(wheel, place, at_hand, home / programs, twistd)


def main() -> None:
    """Build, look, install, use."""
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        source, wheel = build(directory)
        check_contents(wheel)
        use(wheel, directory)
        if os.environ.get("CI"):
            use_with_tools(wheel, directory)
        else:
            print("Not tried: pipx and uv, which are under CI (CI=true make test).")
        python = directory / "environment" / "bin" / "python"
        check_images(python, directory)
        check_images(python, TOP)  # a checkout, which lies before what is installed
        reinstall(python, directory, source)
        check_images(python, directory)
        reinstall(python, directory, "--config-settings", "editable_mode=compat", "--editable", TOP)
        check_images(python, directory)
    print("The package is whole.")


if __name__ == "__main__":
    main()
