"""``ironcurtain fleet``: several machines as one, over a server of NATS."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from string import hexdigits
from typing import TYPE_CHECKING, NoReturn

import click

from ironcurtain.cli.output import as_json, home, print_json, print_lines, print_table
from ironcurtain.errors import ConfigurationError, UsageError
from ironcurtain.home.agent_names import marked
from ironcurtain.home.layout import Home, private_directory
from ironcurtain.operations import Role
from ironcurtain.process.own_programs import daemon_command
from ironcurtain.text.display import one_line

if TYPE_CHECKING:
    from ironcurtain.fleet.joining import ServerFiles
    from ironcurtain.fleet.members import Known, KnownMember
    from ironcurtain.fleet.tasks import Task

PORT = 4222
"""The usual port of NATS."""

TASK_DIGITS = 16
"""Length of a task's id."""


@click.group()
def fleet() -> None:
    """
    See and answer the sessions of several machines from each of them.

    Each machine runs 'twistd ironcurtain', and all reach one server of NATS, which carries what they say to each other
    and can neither read nor change it. A machine believes only those that its file fleet.trust names, for the people
    and roles that stand there.
    """


@fleet.command()
@click.argument("name")
@click.option("--listen", default=f"127.0.0.1:{PORT}", help="Address and port of the server.", show_default=True)
@click.option("--address", "addresses", multiple=True, help="A name or address by which other machines reach it.")
@click.option("--try", "trying", is_flag=True, help="Run the server here, for this machine only, until Ctrl-C.")
def init(name: str, listen: str, addresses: tuple[str, ...], trying: bool) -> None:
    """
    Begin a fleet on this machine, as its member NAME.

    Writes the configuration of a server of NATS, with TLS and an account for each machine, and starts nothing.

    With --try the server runs as well, on an address of this machine only, as long as this command does; it reads its
    file again whenever a machine is added. The same command runs it again.
    """
    from ironcurtain.fleet.joining import ServerFiles, check_name, key_text

    where = home()
    check_name(name)
    if trying and is_member(where, name):
        try_server(ServerFiles(where.fleet_server))
    require_no_member(where)
    address, colon, port = listen.rpartition(":")
    if not colon or not address or not port.isdecimal():
        raise UsageError("--listen takes an address and a port, such as 10.0.0.5:4222")
    if trying and not is_loopback(address):
        raise UsageError("--try is for this machine only: --listen takes an address such as 127.0.0.1 with it")
    private_directory(where.path)
    files = ServerFiles(where.fleet_server)
    files.make(listen, addresses or (address.strip("[]"),))
    become_member(where, files.add(name, (name, key_text(where))))
    if trying:
        print_lines(f"This machine is {name}.")
        try_server(files)
    print_lines(f"This machine is {name}. Start the server, here or where you like with these files:")
    print_lines(f"  nats-server -c {files.configuration}")
    print_lines(f"Then restart the daemon ({daemon_command()}), and add the other machines: ironcurtain fleet add NAME")


@fleet.command()
@click.argument("name")
@click.option(
    "--output", type=click.Path(dir_okay=False, path_type=Path), help="The file to write (default: NAME.join)."
)
def add(name: str, output: Path | None) -> None:
    """
    Write the file with which the machine NAME joins.

    The server lets it in once it has read its own file again. The file has the machine's password: copy it with scp,
    and remove it here.
    """
    import msgspec

    from ironcurtain.files.atomic import publish_once
    from ironcurtain.fleet.joining import ServerFiles, key_text, read_credentials

    where, file = home(), output or Path(f"{name}.join")
    if file.exists():
        raise UsageError(f"{file} exists: remove it, or give another --output")
    files = ServerFiles(where.fleet_server)
    made = files.add(name, (read_credentials(where.fleet_credentials).host, key_text(where)))
    publish_once(file.absolute(), msgspec.json.encode(made))
    print_lines(f"Make the server read its file again: nats-server --signal reload   ({files.configuration})")
    print_lines(f"On {name}: ironcurtain fleet join {file.name}")


@fleet.command()
@click.argument("name")
def remove(name: str) -> None:
    """
    Take the password of the machine NAME from the server's files.

    That keeps it from the server, and from nothing else: take its table out of fleet.trust on every machine, first.
    """
    from ironcurtain.fleet.joining import ServerFiles

    files = ServerFiles(home().fleet_server)
    files.remove(name)
    print_lines(f"Make the server read its file again: nats-server --signal reload   ({files.configuration})")


@fleet.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--person", "people", multiple=True, help="As for 'fleet trust': people of the first machine.")
def join(file: Path, people: tuple[str, ...]) -> None:
    """
    Make this machine a member, with the FILE for it.

    'ironcurtain fleet add' on the first machine has written it.
    """
    from ironcurtain.fleet.joining import key_text, read_credentials, trust

    where = home()
    require_no_member(where)
    private_directory(where.path)
    found = read_credentials(file)
    first, key = found.first
    become_member(where, found)
    if first:
        trust(where, first, key, read_people(people))
        print_lines(f"This machine believes {first} now, for {', '.join(people) or 'nobody yet: see fleet.trust'}.")
    print_lines(f"This machine is {found.host}. Restart the daemon ({daemon_command()}). On {first}, and on others:")
    print_lines(f"  ironcurtain fleet trust {found.host} {key_text(where)} --person local:NAME=view,approve")


@fleet.command()
@click.argument("name")
@click.argument("key")
@click.option(
    "--person",
    "people",
    multiple=True,
    help="Somebody of that machine and their roles here, such as local:alice=view,approve; '*' is anybody.",
)
def trust(name: str, key: str, people: tuple[str, ...]) -> None:
    """
    Believe the machine NAME, which has the KEY.

    Without --person the machine is a member, but may speak for nobody here. 'ironcurtain fleet key' prints its key.
    """
    from ironcurtain.fleet.joining import trust as add_trust

    where = home()
    private_directory(where.path)
    add_trust(where, name, key, read_people(people))
    print_lines(f"{name} may speak for {', '.join(people) or 'nobody'} here. {where.fleet_trust} has all of it.")


@fleet.command()
def key() -> None:
    """
    Print this machine's public key, which also signs its audit logs.
    """
    from ironcurtain.fleet.joining import key_text

    where = home()
    private_directory(where.path)
    click.echo(key_text(where))


@fleet.command()
@as_json
def status(json_output: bool) -> None:
    """
    List the machines, and the tasks that wait for one.

    The list of machines is what this one's daemon knows; the tasks are those given here.
    """
    import msgspec

    from ironcurtain.fleet.task_files import TaskFiles

    known, tasks = known_fleet(home()), TaskFiles(home()).all()
    if json_output:
        print_json({**msgspec.structs.asdict(known), "tasks": tasks})
        return
    if known.unreached:
        since = time.strftime("%H:%M:%S", time.localtime(known.since))
        print_lines(
            f"The server is not reached since {since}: {one_line(known.unreached, 300)}. This list is old.", err=True
        )
    print_table(
        ("HOST", "STATE", "SESSIONS", "LOAD", "FREE", "AGENTS", "ACCOUNTS", "LABELS", "VERSION", "SEEN"),
        [_row(each) for each in known.members] or [("no other machine is seen", "", "", "", "", "", "", "", "", "")],
    )
    if tasks:
        print_lines("")
        here = {each.member.host for each in known.members if not each.lost}
        print_table(("TASK", "STATE", "SESSION", "NEEDS", "WHAT"), [_task_row(task, here) for task in tasks])


@fleet.command("take-back")
@click.argument("task")
def take_back(task: str) -> None:
    """
    Take back the TASK of this machine that waits for another one.
    """
    from ironcurtain.fleet.task_files import TaskFiles
    from ironcurtain.fleet.tasks import Task

    where = home()
    if len(task) != TASK_DIGITS or not set(task) <= set(hexdigits):
        raise UsageError("TASK is an id, as 'ironcurtain fleet status' lists it")
    TaskFiles(where).change(task, Task.withdraw)
    print_lines(f"Task {task} starts nowhere.")


def _task_row(task: Task, here: set[str]) -> tuple[str, ...]:
    where = f"{task.host}/{task.started.session}" if task.started.session else task.host
    state = (
        "lost"
        if task.running and task.host not in here
        else f"{task.state}{' again' if task.lost and task.running else ''}"
    )
    whose = f"not on {task.refused[-1]}" if task.refused and not task.running else "failed"
    what = f"{whose}: {task.started.why}" if task.started.why else task.body.task.partition("\n")[0]
    return task.id, state, where, one_line(",".join((task.agent, *task.labels)), 40), one_line(what, 60)


def _row(known: KnownMember) -> tuple[str, ...]:
    member = known.member
    return (
        member.host,
        "lost" if known.lost else "here",
        f"{member.sessions} of {member.capacity}",
        one_line(f"{member.load:.2f}", 8),
        f"{member.free_memory / 2**30:.1f} GiB",
        one_line(",".join(map(marked, member.agents)), 60),
        *(one_line(",".join(names), 40) for names in (member.accounts, member.labels)),
        one_line(member.version, 20),
        time.strftime("%H:%M:%S", time.localtime(known.seen_at)),
    )


def known_fleet(where: Home) -> Known:
    """
    :returns: what the daemon of a home knows.
    :raises UsageError: it is no member, or does not run.
    """
    from ironcurtain.fleet.lacking import read_known

    known = read_known(where)
    if known is None:
        raise UsageError(
            f"no daemon runs here as a member of a fleet: ironcurtain fleet init (or join), then {daemon_command()}"
        )
    return known


def say_what_lists_lack(where: Home, more: Sequence[str] = ()) -> None:
    """
    Print on standard error which sessions of other machines no list has now, and since when.

    :param more: sentences that say which others are not in it.
    """
    for line in more:
        print_lines(line, err=True)
    if where.fleet_members.exists():
        from ironcurtain.fleet.lacking import lists_lack

        for line in lists_lack(where):
            print_lines(line, err=True)


def read_people(people: tuple[str, ...]) -> dict[str, list[Role]]:
    """
    :param people: each a name, an equals sign, and roles separated by commas.
    :raises UsageError: one is wrong.
    """
    found: dict[str, list[Role]] = {}
    for person in people:
        name, equals, roles = person.rpartition("=")
        try:
            found[name] = [Role(role) for role in roles.split(",")]
        except ValueError:
            equals = ""
        if not equals or not name:
            raise UsageError(f"--person {person}: write NAME=ROLES, with the roles {', '.join(Role)}")
    return found


def is_member(where: Home, name: str) -> bool:
    """:returns: whether this machine is a member with this name already, and has the server's files."""
    from ironcurtain.fleet.joining import ServerFiles, read_credentials

    if not where.fleet_credentials.exists() or not ServerFiles(where.fleet_server).configuration.exists():
        return False
    return read_credentials(where.fleet_credentials).host == name


def is_loopback(address: str) -> bool:
    """:returns: whether only this machine reaches an address."""
    import ipaddress

    try:
        return ipaddress.ip_address(address.strip("[]")).is_loopback
    except ValueError:
        return address == "localhost"


def try_server(files: ServerFiles) -> NoReturn:
    """
    Run the server until a signal.

    :raises SystemExit: afterwards; Ctrl-C is the usual end.
    :raises IronCurtainError: it does not start, or ends by itself.
    """
    import signal

    from ironcurtain.fleet.trial_server import TrialServer, find_server

    def ready() -> None:
        print_lines(f"A server for trials runs on {files.listen} until Ctrl-C. In another terminal:")
        print_lines(f"  restart the daemon ({daemon_command()}), and add other machines: ironcurtain fleet add NAME")

    number = TrialServer(find_server(), files).run(ready)
    raise SystemExit(0 if number == signal.SIGINT else 128 + number)


def require_no_member(where: Home) -> None:
    """:raises UsageError: this machine is a member already."""
    if where.fleet_credentials.exists():
        raise UsageError(f"this machine is a member already: {where.fleet_credentials}")


def become_member(where: Home, credentials: object) -> None:
    """
    Write the credentials, and name them in ``config.toml``.

    :raises ConfigurationError: that file has a table ``[fleet]`` already.
    """
    import msgspec

    from ironcurtain.files.atomic import write_atomically
    from ironcurtain.home.layout import read_configuration
    from ironcurtain.home.parsing import parse_toml

    text = read_configuration(where.config) or "version = 1\n"
    if "fleet" in parse_toml(str(where.config), text):
        raise ConfigurationError(str(where.config), "has a table [fleet] already: remove it first")
    write_atomically(where.fleet_credentials, msgspec.json.encode(credentials))
    end = "" if text.endswith("\n") else "\n"
    table = f'{end}\n[fleet]\ncredentials = "{where.fleet_credentials.name}"\n'
    write_atomically(where.config, (text + table).encode())
