"""What ``ironcurtain doctor`` says of the models, and of the keys and tokens in the settings."""

from __future__ import annotations

import os
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from ironcurtain.cli.findings import HINT, OK, WRONG, Finding
from ironcurtain.cli.output import settings
from ironcurtain.home.user_paths import user_path
from ironcurtain.process.search_path import host_path

if TYPE_CHECKING:
    from ironcurtain.home.layout import Home
    from ironcurtain.home.sections import SecretSource


def models(where: Home) -> Iterator[Finding]:
    """:returns: whether each model that is set can be asked."""
    from ironcurtain.llm.registry import backends_in_order

    found = settings(where).settings
    backends, _ = backends_in_order((), "", found.model)
    of_shell, _ = backends_in_order((), "", found.model, found.shell.backends)
    for backend in dict.fromkeys((*backends, *of_shell)):
        yield _model(where, backend)


def _model(where: Home, backend: str) -> Finding:
    from ironcurtain.home.sections import Provider
    from ironcurtain.llm.registry import needs_key
    from ironcurtain.providers.keys import key_variable

    name, _, argument = backend.partition(":")
    if name == "scripted":
        return Finding("model", OK, f"scripted: {argument}")
    if name == "subprocess":
        state, detail, mend = _command(argument, "the model's command in config.toml", "command")
        return Finding("model", state, f"subprocess, {detail}", mend)
    provider = settings(where).settings.providers.get(name, Provider())
    key = provider.key
    if not needs_key(backend, key.has_source):
        if provider.base_url or provider.host:
            return Finding("model", OK, f"{name}, without a key, at {provider.base_url or provider.host}")
        return Finding(
            "model", HINT, f"{name}, but no address", f"Set providers.{name}.base_url in {where.config.name}"
        )
    variable = key_variable(name, key, os.environ)
    state, detail, mend = _secret("key", key, variable, f"providers.{name}.key in {where.config.name}")
    return Finding("model", state, f"{name}, {detail}", mend)


def github(where: Home) -> Iterator[Finding]:
    """:returns: whether the token for agents' ``gh`` can be had, if the settings have one."""
    found = settings(where).settings.github
    if not found.token.has_source:
        if found.repositories:
            yield Finding("GitHub", HINT, "agents' gh has no token", f"Set github.token in {where.config.name}")
        return
    place = f"github.token in {where.config.name}"
    state, detail, mend = _secret("token", found.token, found.token.env, place)
    read = ", ".join(found.repositories) or "nothing"
    yield Finding("GitHub", state, f"agents' gh, {detail}; it may read {read} without a question", mend)


def _secret(what: str, source: SecretSource, variable: str, place: str) -> tuple[str, str, str]:
    """
    :param what: what it is, for people.
    :param variable: the environment variable, if it comes from one.
    :param place: the setting.
    """
    if source.file:
        return _secret_file(what, Path(user_path(source.file)))
    if source.command:
        return _command(source.command, place, f"{what} from")
    if os.environ.get(variable):
        return OK, f"{what} from {variable}", ""
    return HINT, f"but no {what} in {variable}", f"Set it: export {variable}=..."


def _secret_file(what: str, path: Path) -> tuple[str, str, str]:
    try:
        reason = "" if path.stat().st_size else "it is empty"
    except OSError as e:
        reason = e.strerror or str(e)
    if not reason:
        return OK, f"{what} from {path}", ""
    mend = f"Write it there, readable by you only: (umask 077; cat > {shlex.quote(str(path))})"
    return HINT, f"but no {what} in {path}: {reason}", mend


def _command(command: str, place: str, role: str) -> tuple[str, str, str]:
    """:param role: what stands before the command where it can be run."""
    # It is not run: it may ask for a password.
    try:
        program = next(iter(shlex.split(command)), "")
    except ValueError as e:
        return WRONG, f"but its command cannot be read: {e}", f"Mend {place}"
    if shutil.which(program, path=host_path()) is None:
        return HINT, f"but there is no program {program!r} for its command", f"Install it, or mend {place}"
    return OK, f"{role} {command}", ""
