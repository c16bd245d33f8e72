"""Which registries npm and uv use on this machine, by their configuration: downloads reach no other host."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ironcurtain.errors import ConfigurationError, Unavailable
from ironcurtain.home.layout import read_configuration
from ironcurtain.home.parsing import parse_toml
from ironcurtain.http.urls import UnclearAddress, read_web_address
from ironcurtain.network.access import Access, Entry
from ironcurtain.process import bounded
from ironcurtain.process.bounded import Bounds, Unfinished
from ironcurtain.process.search_path import required_program
from ironcurtain.registries import npm, pypi

ASKING_SECONDS = 20.0
"""Time limit for asking npm in seconds; it needs a quarter of one."""

_UV_INDEX = f"https://{pypi.INDEX}/simple"


@dataclass(frozen=True)
class Registries:
    """
    :param access: what an installation may connect to.
    :param options: of npm, which say the same.
    :param variables: of uv, which say the same.
    :param files: that the options name.
    """

    access: Access
    options: tuple[str, ...] = ()
    variables: Mapping[str, str] | None = None
    files: tuple[str, ...] = ()


def npm_registries(program: str, package: str, environ: Mapping[str, str]) -> Registries:
    """
    Ask npm outside any sandbox, and in no directory of an agent.

    :param program: path of npm.
    :param package: what is installed; its scope can have a registry of its own.
    :raises Unavailable: npm does not say which registry it uses.
    """
    scope = package.partition("/")[0] if package.startswith("@") else ""
    names = ["registry", *([f"{scope}:registry"] if scope else [])]
    urls, options = list[str](), list[str]()
    for name in names:
        url = _npm_says(program, name, environ)
        if url not in ("", "undefined", "null"):
            urls.append(url)
            options.append(f"--{name}={_plain(url)}")
    ca_file = _npm_says(program, "cafile", environ)  # as behind a proxy that decrypts
    files = (ca_file,) if os.path.isabs(ca_file) and os.path.isfile(ca_file) else ()
    options += [f"--cafile={file}" for file in files]
    return Registries(_access(urls or [npm.PUBLIC]), tuple(options), files=files)


def uv_registries(environ: Mapping[str, str]) -> Registries:
    """
    Read the variables and files that uv reads.

    :raises Unavailable: an index has an address that is not understood, or a file cannot be read.
    """
    tables = list(map(_read_toml, _uv_files(environ)))
    default = environ.get("UV_DEFAULT_INDEX") or environ.get("UV_INDEX_URL")
    default = default or next((url for table in tables for url in _default_index(table)), _UV_INDEX)
    extra = " ".join((environ.get("UV_INDEX", ""), environ.get("UV_EXTRA_INDEX_URL", ""))).split()
    extra = [each.rpartition("=")[2] if "://" not in each.partition("=")[0] else each for each in extra]
    extra += [url for table in tables for url in _further_indexes(table)]
    urls = [url for url in (default, *extra) if url.startswith(("http://", "https://"))]
    files = [f"https://{pypi.FILES}"] if any(f"//{pypi.INDEX}/" in f"{url}/" for url in urls) else []
    variables = {"UV_DEFAULT_INDEX": _plain(default), "UV_PYTHON_DOWNLOADS": "never"}
    if further := " ".join(_plain(url) for url in urls[1:]):
        variables["UV_INDEX"] = further
    return Registries(_access([*urls, *files]), variables=variables)


def _npm_says(program: str, name: str, environ: Mapping[str, str]) -> str:
    # Not all variables: they can hold keys, and npm takes settings from them.
    kept = {key: value for key, value in environ.items() if key in ("PATH", "HOME") or key.lower().startswith("npm_")}
    try:
        with tempfile.TemporaryDirectory(prefix="ironcurtain-npm-") as scratch:  # it writes a log, else into the home
            kept["npm_config_cache"] = scratch
            until_we_die = [required_program("setpriv"), "--pdeathsig", "KILL", "--"]
            line = [*until_we_die, program, "config", "get", name]
            done = bounded.run(line, Bounds(ASKING_SECONDS), environment=kept, cwd="/")
    except (OSError, Unfinished) as e:
        raise Unavailable(f"npm does not say which registry it uses: {e}") from None
    return done.output.decode(errors="replace").strip() if done.status == 0 else ""


def _uv_files(environ: Mapping[str, str]) -> Iterator[str]:
    settings = environ.get("XDG_CONFIG_HOME") or os.path.join(environ.get("HOME", "/"), ".config")
    yield environ.get("UV_CONFIG_FILE") or os.path.join(settings, "uv", "uv.toml")
    yield "/etc/uv/uv.toml"


def _read_toml(path: str) -> Mapping[str, Any]:
    if path == os.devnull:  # the usual way to say that there is none
        return {}
    try:
        return parse_toml(path, read_configuration(Path(path)) or "")
    except ConfigurationError as e:
        raise Unavailable(f"the settings of uv name the index: {e}") from None


def _default_index(table: Mapping[str, Any]) -> Iterator[str]:
    yield from (str(each["url"]) for each in _indexes(table) if each.get("default") is True)
    if isinstance(url := table.get("index-url"), str):
        yield url


def _further_indexes(table: Mapping[str, Any]) -> Iterator[str]:
    yield from (str(each["url"]) for each in _indexes(table) if not each.get("default") and not each.get("explicit"))
    further = table.get("extra-index-url")
    yield from map(str, further if isinstance(further, list) else ())


def _indexes(table: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    found = table.get("index")
    return [each for each in found if isinstance(each, dict) and "url" in each] if isinstance(found, list) else []


def _access(urls: Sequence[str]) -> Access:
    entries = dict[Entry, None]()
    for url in urls:
        try:
            address = read_web_address(url)
        except UnclearAddress as e:
            raise Unavailable(f"the address of a registry is unclear: {e}") from None
        entries[Entry(address.host.name, (address.port,))] = None
    return Access(tuple(entries))


def _plain(url: str) -> str:
    """:returns: an address without user and password, which no installation gets."""
    scheme, between, rest = url.partition("://")
    authority, slash, path = rest.partition("/")
    return f"{scheme}{between}{authority.rpartition('@')[2]}{slash}{path}"
