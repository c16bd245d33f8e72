"""``ironcurtain ssh``: manage the keys that may log in, and show the service's host key."""

from __future__ import annotations

from typing import TYPE_CHECKING, BinaryIO

import click

from ironcurtain.cli.output import as_json, home, print_json, print_lines, print_table
from ironcurtain.home.layout import Home, private_directory

if TYPE_CHECKING:
    from ironcurtain.ssh.authorized_keys import AuthorizedKey

ROLES = "view,approve"
"""The default roles of a key: view and decide."""


@click.group()
def ssh() -> None:
    """
    Manage the keys that may log in over SSH, and show the service's host key.

    The daemon listens for SSH. Each key has roles: view (see sessions and waiting calls), approve (decide), attach
    (work in a session), admin (everything, for all users' sessions). Changes apply at once: a connection with a removed
    key is closed.
    """


@ssh.command("add-key")
@click.argument("file", type=click.File("rb"))
@click.option("--name", default="", help="The holder's name in the audit log (default: the comment in the file).")
@click.option("--roles", "roles_text", help=f"Roles, separated by commas (default: {ROLES}).")
def add_key(file: BinaryIO, name: str, roles_text: str | None) -> None:
    """
    Permit the public key in FILE to log in.

    FILE is for example ~/.ssh/id_ed25519.pub; '-' is standard input. A key that is already listed gets the given roles.
    """
    from msgspec.structs import replace

    from ironcurtain.ssh.key_files import KeyFile

    where = home()
    key = read_key(file, roles_text or ROLES, name)
    if (known := KeyFile.of(where).read().find(key.blob)) is not None:
        roles = key.roles if roles_text else known.roles
        key = replace(key, name=name or known.name, roles=roles)
    let_in(where, key)


def read_key(file: BinaryIO, roles_text: str = ROLES, name: str = "") -> AuthorizedKey:
    """
    Read a ``.pub`` file.

    :param name: replaces the comment in it.
    :raises UsageError: it does not contain exactly one permitted key, or a role does not exist.
    :raises ConfigurationError: it is not UTF-8 text.
    """
    from ironcurtain.errors import UsageError
    from ironcurtain.ssh.authorized_keys import LINE_LIMIT, public_key, read_roles
    from ironcurtain.text.decoding import decode_text

    text = decode_text(file.name, file.read(2 * LINE_LIMIT))
    if "PRIVATE KEY" in text:
        raise UsageError("this is a private key, which must stay with its holder: give the .pub file")
    if len(lines := [line for line in text.splitlines() if line.strip()]) != 1:
        raise UsageError("the file must contain one public key on one line")
    return public_key(lines[0], read_roles(roles_text), name)


def let_in(where: Home, key: AuthorizedKey) -> None:
    """
    Add a key, or change the roles of a listed one, and print the result.

    :raises UsageError: the key is listed with another name, or another key has this name.
    """
    from ironcurtain.ssh.key_files import KeyFile

    private_directory(where.path)
    file = KeyFile.of(where)
    known = file.read().find(key.blob)
    file.add(key)
    already = " already" if known == key else ""
    before = "" if known in (None, key) else f"; before: {', '.join(_roles(known.roles))}"
    print_lines(f"{key.name} may log in{already} ({', '.join(_roles(key.roles))}{before}): {key.fingerprint}")


@ssh.command()
@as_json
def keys(json_output: bool) -> None:
    """
    List the keys that may log in. Exits with status 78 if a line of the file is wrong; such a line is ignored.
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
        print_lines("No key may log in yet. Add one with: ironcurtain ssh add-key FILE")
    for problem in listed.problems:
        print_lines(f"{file.path}:{problem.line}: {problem.what}", err=True)
    if listed.problems:
        raise SystemExit(ConfigurationError.exit_status)


@ssh.command("remove-key")
@click.argument("name")
def remove_key(name: str) -> None:
    """
    Remove the key with the name NAME, and close its connections.
    """
    from ironcurtain.ssh.key_files import KeyFile

    KeyFile.of(home()).remove(name)
    print_lines(f"{name} may no longer log in.")


@ssh.command("host-key")
@as_json
def host_key(json_output: bool) -> None:
    """
    Show the service's host key.

    This is the key that ssh asks about at the first connection. It is created if missing.
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
