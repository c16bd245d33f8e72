"""``ironcurtain login`` and ``ironcurtain logout``."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

import click

from ironcurtain.cli.output import as_json, home, print_json, print_lines, print_table, settings
from ironcurtain.text.display import one_line

if TYPE_CHECKING:
    from ironcurtain.accounts.login import Login
    from ironcurtain.home.account_sections import AccountName
    from ironcurtain.home.layout import Home
    from ironcurtain.secrets.redaction import Secret

NAMES = ("claude", "chatgpt", "google", "copilot")
"""The accounts, as :data:`ironcurtain.accounts.places.ACCOUNT_NAMES` has them, which is imported late."""

TOKEN_PREFIX = "sk-ant-oat01-"
"""How the tokens of ``claude setup-token`` begin."""


@click.command()
@click.argument("account", type=click.Choice(NAMES), required=False)
@click.option("--token", is_flag=True, help="Keep a token that 'claude setup-token' printed; it is asked for.")
@as_json
def login(account: AccountName | None, token: bool, json_output: bool) -> None:
    """
    Log in at a model's provider with a subscription, or list the logins.

    Agents never get the tokens: IronCurtain keeps them in its home and renews them. This login is apart from that of
    the program on your machine, since a refresh token works only once: two programs that have the same one log each
    other out. To use your program's login as it is, without renewing it, name it in config.toml instead:

    \b
      [accounts.claude]
      source = "cli"

    A token of Claude that lasts is also read from CLAUDE_CODE_OAUTH_TOKEN.
    """
    from ironcurtain.errors import UsageError
    from ironcurtain.process.identity import hide_memory

    hide_memory()
    where = home()
    if account is None:
        if token:
            raise UsageError("name the account: ironcurtain login claude --token")
        _list(where, json_output)
    elif token:
        _keep_token(where, account)
    else:
        _log_in(where, account)


@click.command()
@click.argument("account", type=click.Choice(NAMES))
def logout(account: AccountName) -> None:
    """
    Remove the login of ACCOUNT from this machine.

    The provider is not told: end the login on the provider's page as well if the tokens may be known to others.
    """
    from ironcurtain.accounts.kept import KeptLogins

    removed = KeptLogins(home().accounts).of(account).remove()
    print_lines(f"Logged out of {account}." if removed else f"There is no login {account}.")


def _list(where: Home, json_output: bool) -> None:
    from ironcurtain.cli.account_list import accounts, choice, states, until

    found = accounts(where)
    listed = states(found)
    if json_output:
        print_json(
            [
                {
                    "name": place.name,
                    "account": state.title,
                    "from": place.shown,
                    "origin": place.origin,
                    "expires": state.expires,
                    "renewed": state.renewed,
                    "problem": state.problem or None,
                }
                for place, state in listed
            ]
        )
        return
    if not listed:
        print_lines("There is no account. Log in with, for example: ironcurtain login claude")
    else:
        rows = [(place.name, one_line(state.title, 60), until(state), place.shown) for place, state in listed]
        print_table(("NAME", "ACCOUNT", "UNTIL", "FROM"), rows)
    for place, state in listed:
        if state.problem:
            print_lines(f"{place.name}: {one_line(state.problem)}")
    for place in found.unused():
        print_lines(
            f"{place.name}: {place.shown} has a login of your own program. To use it without renewing it, write in "
            f'config.toml: [accounts.{place.name}] source = "cli"'
        )
    for name in dict.fromkeys(place.name for place, _ in listed):
        if problem := choice(found, name):
            print_lines(f"{name}: {problem}")


def _log_in(where: Home, account: AccountName) -> None:
    from ironcurtain.cli.run import run
    from ironcurtain.container.errors import EngineUnavailable
    from ironcurtain.errors import Unavailable
    from ironcurtain.home.layout import private_directory
    from ironcurtain.terminal.raw import NoTerminal

    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise NoTerminal
    private_directory(where.path)
    try:
        found = run(lambda reactor: _run_program(reactor, where, account))
    except EngineUnavailable as e:
        token = " or keep a token: ironcurtain login claude --token" if account == "claude" else ""
        instead = f'name your own program\'s login ([accounts.{account}] source = "cli" in config.toml)'
        raise Unavailable(f"{e}. The login runs in a container; without Docker, {instead}{token}") from None
    _keep(where, found)
    print_lines(f"Logged in: {one_line(found.title)}.")


async def _run_program(reactor: Any, where: Home, account: AccountName) -> Login:
    from ironcurtain.accounts.login_programs import PROGRAMS
    from ironcurtain.container.engine import Engine
    from ironcurtain.container.image_choices import find_choices, load_recipes
    from ironcurtain.container.images import AgentImages
    from ironcurtain.container.sidecar import SocketWay
    from ironcurtain.container_agent.account_login import AccountLogin, LoginSurroundings
    from ironcurtain.http.upstream_proxies import UpstreamProxies
    from ironcurtain.network.dialling import Dialer
    from ironcurtain.process.accounts import session_account
    from ironcurtain.terminal.local import LocalTerminal

    found, engine = settings(where).settings, Engine.find(reactor, os.environ)
    images = AgentImages(engine, load_recipes(where), find_choices(os.environ, found.container))
    around = LoginSurroundings(
        reactor,
        where,
        engine,
        Dialer(reactor, reactor.nameResolver, UpstreamProxies(reactor, found.network, os.environ)),
        session_account(found.run_as, os.environ, None, os.geteuid()),
        SocketWay(found.agents.sockets),
        found.resources,
        images.ensure,
        lambda line: print_lines(line, err=True),
    )
    return await AccountLogin(account, PROGRAMS[account], around).run(LocalTerminal(reactor))


def _keep_token(where: Home, account: AccountName) -> None:
    from ironcurtain.accounts.login import Login
    from ironcurtain.errors import UsageError

    if account != "claude":
        raise UsageError(f"only Claude has tokens that last: run ironcurtain login {account}")
    pasted = _pasted()
    if pasted.reveal().startswith("sk-ant-api"):
        raise UsageError("this is an API key, which is no login: set it in ANTHROPIC_API_KEY")
    if not _is_lasting(pasted):
        raise UsageError(f"this is no token of claude setup-token, which begins with {TOKEN_PREFIX}: nothing was kept")
    _keep(where, Login("claude", pasted))
    print_lines("Kept the token. Agents can use it: ironcurtain start --agent claude-code")


def _pasted() -> Secret:
    from ironcurtain.secrets.redaction import Secret

    if not sys.stdin.isatty():
        return Secret(sys.stdin.readline().strip(), "standard input")
    print_lines("Run claude setup-token, on any machine, and paste its token here. It is not shown.", err=True)
    return Secret(click.prompt("Token", hide_input=True, err=True).strip(), "terminal")


def _is_lasting(token: Secret) -> bool:
    from ironcurtain.accounts.login import is_token

    value = token.reveal()
    return is_token(value) and value.startswith(TOKEN_PREFIX) and len(value) > len(TOKEN_PREFIX)


def _keep(where: Home, login: Login) -> None:
    from ironcurtain.accounts.kept import KeptLogins
    from ironcurtain.files.locks import locked
    from ironcurtain.home.layout import private_directory

    private_directory(where.path)
    file = KeptLogins(where.accounts).of(login.kind)
    with locked(file.lock().path):
        file.write(login)
