"""``ironcurtain ssh``: who may come in over SSH, and by what the service is known."""

from __future__ import annotations

from typing import TYPE_CHECKING, TextIO

import click

from ironcurtain.cli.output import as_json, home, print_json, print_lines, print_table
from ironcurtain.home.layout import Home, private_directory

if TYPE_CHECKING:
    from ironcurtain.ssh.authorized_keys import AuthorizedKey

ROLES = "view,approve"
"""What a key may do unless somebody says otherwise: see what waits, and decide."""


@click.group()
def ssh() -> None:
    """
    Say who may come in over SSH, and show by what key the service is known.

    The daemon listens for SSH. Each key has roles: view (see sessions and what waits), approve (decide), attach (work
    in a session), admin (all of it, for everybody's sessions). Changes hold at once: whoever is in with a key that is
    removed is cut off.
    """


@ssh.command("add-key")
@click.argument("file", type=click.File())
@click.option("--name", default="", help="What the audit calls the holder (default: the comment in the file).")
@click.option("--roles", "roles_text", help=f"Names with commas between them (default: {ROLES}).")
def add_key(file: TextIO, name: str, roles_text: str | None) -> None:
    """
    Let the public key in FILE in, for example ~/.ssh/id_ed25519.pub; '-' is standard input.

    A key that is listed already gets the roles that are given.
    """
    from dataclasses import replace

    from ironcurtain.ssh.key_files import KeyFile

    where = home()
    key = read_key(file, roles_text or ROLES, name)
    if (known := KeyFile.of(where).read().find(key.blob)) is not None:
        roles = key.roles if roles_text else known.roles
        key = replace(key, name=name or known.name, roles=roles)
    let_in(where, key)


def read_key(file: TextIO, roles_text: str = ROLES, name: str = "") -> AuthorizedKey:
    """
    Read a ``.pub`` file.

    :param name: in place of the comment in it.
    :raises UsageError: it does not hold one key that may be listed, or there is no such role.
    """
    from ironcurtain.errors import UsageError
    from ironcurtain.ssh.authorized_keys import LINE_LIMIT, public_key, read_roles

    text = file.read(2 * LINE_LIMIT)
    if "PRIVATE KEY" in text:
        raise UsageError("this is a private key, which belongs to nobody but its holder: give the .pub file")
    if len(lines := [line for line in text.splitlines() if line.strip()]) != 1:
        raise UsageError("the file has to hold one public key on one line")
    return public_key(lines[0], read_roles(roles_text), name)


def let_in(where: Home, key: AuthorizedKey) -> None:
    """
    List a key, or give one that is listed other roles, and say so.

    :raises UsageError: the key has another name there, or another key has this name.
    """
    from ironcurtain.ssh.key_files import KeyFile

    private_directory(where.path)
    file = KeyFile.of(where)
    known = file.read().find(key.blob)
    file.add(key)
    already = " already" if known == key else ""
    before = "" if known in (None, key) else f"; before: {', '.join(_roles(known.roles))}"
    print_lines(f"{key.name} may come in{already} ({', '.join(_roles(key.roles))}{before}): {key.fingerprint}")


@ssh.command()
@as_json
def keys(json_output: bool) -> None:
    """
    List the keys that may come in. Ends with status 78 if a line of the file is wrong; such a line lets nobody in.
    """
    from ironcurtain.errors import ConfigurationError
    from ironcurtain.ssh.key_files import KeyFile

    file = KeyFile.of(home())
    listed = file.read()
    if json_output:
        found = [
            {"name": k.name, "roles": _roles(k.roles), "type": k.type, "fingerprint": k.fingerprint}
            for k in listed.keys
        ]
        print_json({"keys": found, "problems": [{"line": p.line, "what": p.what} for p in listed.problems]})
    elif listed.keys:
        rows = [(k.name, ",".join(_roles(k.roles)), k.type, k.fingerprint) for k in listed.keys]
        print_table(("NAME", "ROLES", "TYPE", "FINGERPRINT"), rows)
    else:
        print_lines("Nobody may come in yet. Let somebody in with: ironcurtain ssh add-key FILE")
    for problem in listed.problems:
        print_lines(f"{file.path}:{problem.line}: {problem.what}", err=True)
    if listed.problems:
        raise SystemExit(ConfigurationError.exit_status)


@ssh.command("remove-key")
@click.argument("name")
def remove_key(name: str) -> None:
    """
    Let the key called NAME in no more, and cut off whoever is in with it.
    """
    from ironcurtain.ssh.key_files import KeyFile

    KeyFile.of(home()).remove(name)
    print_lines(f"{name} may not come in any more.")


@ssh.command("host-key")
@as_json
def host_key(json_output: bool) -> None:
    """
    Show the service's own key, which ssh asks about at the first connection. It is made if there is none yet.
    """
    from ironcurtain.ssh.key_files import host_key as find_host_key

    where = home()
    private_directory(where.path)
    key = find_host_key(where)
    if json_output:
        print_json({"fingerprint": key.fingerprint, "public": key.public})
    else:
        print_lines(f"{key.fingerprint}\n{key.public}")


def _roles(roles: frozenset[str]) -> list[str]:
    from ironcurtain.operations import Role

    return [str(role) for role in Role if role in roles]
