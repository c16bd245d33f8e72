"""The kept OAuth logins at MCP servers behind HTTP: one file per server, bound to the server's URL."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import msgspec

from ironcurtain.errors import NotAllowed, NotFound, UsageError
from ironcurtain.files.atomic import write_atomically
from ironcurtain.files.locks import FileLock, locked
from ironcurtain.home.layout import private_directory, read_configuration
from ironcurtain.home.parsing import parse_json
from ironcurtain.home.structured import convert
from ironcurtain.mcp_proxy.names import BACKEND_NAME
from ironcurtain.secrets.redaction import Secret


class Login(msgspec.Struct, frozen=True):
    """
    A login at one server.

    :param url: URL of the MCP server for which the tokens are.
    :param tokens: JSON of the token endpoint's last answer.
    :param client: JSON of the client's registration.
    :param expires: when the access token expires, in seconds since the epoch; ``None`` if it is not known.
    :param metadata: JSON of the authorization server's metadata; ``null`` if it has none.
    :param resource: JSON of the MCP server's metadata; ``null`` if it has none.
    """

    url: Secret
    tokens: Secret
    client: Secret
    expires: float | None
    metadata: str
    resource: str

    @property
    def renewable(self) -> bool:
        """Whether there is a refresh token."""
        return bool(json.loads(self.tokens.reveal()).get("refresh_token"))

    def secrets(self) -> list[Secret]:
        """:returns: the values that nobody may see."""
        held = {**json.loads(self.tokens.reveal()), **json.loads(self.client.reveal())}
        names = ("access_token", "refresh_token", "client_secret")
        return [Secret(held[name], "OAuth login") for name in names if held.get(name)]


class _Stored(msgspec.Struct):
    url: str
    tokens: dict[str, Any]
    client: dict[str, Any]
    expires: float | None
    metadata: dict[str, Any] | None
    resource: dict[str, Any] | None


class LoginFile(msgspec.Struct, frozen=True):
    """The login at one server."""

    path: Path

    def read(self, url: Secret) -> Login | None:
        """
        :returns: the login; ``None`` if there is none, or it is for another URL.
        :raises ConfigurationError: the file is damaged.
        """
        text = read_configuration(self.path)
        if text is None:
            return None
        stored: _Stored = convert(str(self.path), parse_json(str(self.path), text), _Stored, text)
        if stored.url != url.reveal():
            return None
        tokens, client = Secret(json.dumps(stored.tokens)), Secret(json.dumps(stored.client))
        metadata, resource = json.dumps(stored.metadata), json.dumps(stored.resource)
        return Login(url, tokens, client, stored.expires, metadata, resource)

    def lock(self) -> FileLock:
        """:returns: the lock to hold while the login is changed."""
        private_directory(self.path.parent)
        return FileLock(self.path.with_suffix(".lock"))

    def write(self, login: Login) -> None:
        """Replace the login. The caller holds the lock."""
        parts = {"tokens": login.tokens.reveal(), "client": login.client.reveal()}
        parts |= {"metadata": login.metadata, "resource": login.resource}
        stored = {name: json.loads(text) for name, text in parts.items()}
        write_atomically(
            self.path, json.dumps({"url": login.url.reveal(), "expires": login.expires, **stored}).encode()
        )

    def remove(self) -> bool:
        """:returns: whether there was a login."""
        if not self.path.exists():
            return False
        with locked(self.lock().path):
            self.path.unlink(missing_ok=True)
        return True


class LoginFiles(msgspec.Struct, frozen=True):
    """:param directory: it may be missing."""

    directory: Path

    def of(self, server: str) -> LoginFile:
        """:raises NotFound: no server can have this name."""
        if not BACKEND_NAME.match(server):
            raise NotFound(f"no MCP server is called {server!r}")
        return LoginFile(self.directory / f"{server}.json")


class Redirect(msgspec.Struct, frozen=True):
    """What an authorization server sent back through the browser (RFC 6749, section 4.1.2; RFC 9207)."""

    code: Secret
    state: str | None
    issuer: str | None


def parse_redirect(url: str) -> Redirect:
    """
    :param url: the address to which the browser was sent.
    :raises NotAllowed: the login was refused.
    :raises UsageError: it is not such an address.
    """
    try:
        query = parse_qs(urlsplit(url.strip()).query)
    except ValueError:
        query = {}
    if "error" in query:
        raise NotAllowed("the authorization server refused the login")
    if len(query.get("code", ())) != 1:
        raise UsageError("this is not the address to which the browser was sent: it has no code; log in again")
    return Redirect(Secret(query["code"][0]), query.get("state", [None])[-1], query.get("iss", [None])[-1])
