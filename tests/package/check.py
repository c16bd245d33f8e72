"""
Build IronCurtain, install it where the checkout is not in sight, and use it. ``tox -e package`` runs this.

Needs the ``build`` package, and nothing of the test dependencies.
"""

from __future__ import annotations

import os
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
    environ = {
        "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
        "HOME": str(directory),
        "IRONCURTAIN_HOME": str(directory / "home"),
        "LANG": "C.UTF-8",
    }
    version = wheel.name.split("-")[1]
    demand(run(programs / "ironcurtain", "--version", cwd=directory, environ=environ), version)
    demand(run(programs / "ironcurtain", "--help", cwd=directory, environ=environ), "demo")
    help_text = run(programs / "twistd", "-n", "ironcurtain", "--help", cwd=directory, environ=environ)
    demand(help_text, "--home")
    print(run(programs / "ironcurtain", "demo", "--yes", cwd=directory, environ=environ))


def main() -> None:
    """Build, look, install, use."""
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        source, wheel = build(directory)
        check_contents(wheel)
        use(wheel, directory)
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
