"""
OAuth for MCP servers behind HTTP, with the official SDK: logging in, and the tokens of requests in a session.

In a session nobody is asked to log in: without usable tokens, requests are sent without any.
"""

from __future__ import annotations

import json
import ssl
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import anyio
import httpx2
from mcp.client.auth import OAuthClientProvider, OAuthFlowError, OAuthRegistrationError, OAuthTokenError
from mcp.shared.auth import (
    AuthorizationCodeResult,
    OAuthClientInformationFull,
    OAuthClientMetadata,
    OAuthMetadata,
    OAuthToken,
    ProtectedResourceMetadata,
)
from pydantic import AnyUrl
from twisted.internet.interfaces import IReactorTime

from ironcurtain.errors import NotAllowed, Unavailable, UsageError
from ironcurtain.files.locks import Held
from ironcurtain.http.addresses import keeps_secrets
from ironcurtain.http.upstream_proxies import UpstreamProxies
from ironcurtain.mcp_proxy.envelope import IDENTITY
from ironcurtain.mcp_proxy.http_outbound import NoWayThrough, ProxyingTransport
from ironcurtain.mcp_proxy.http_transport import AUTHORIZING, BoundedTransport, UnwantedAnswer
from ironcurtain.mcp_proxy.logins import Login, LoginFile, parse_redirect
from ironcurtain.mcp_proxy.servers_config import HttpServer
from ironcurtain.mcp_proxy.session import NEWEST_VERSION
from ironcurtain.secrets.redaction import Redactor, Secret

LOGIN_SECONDS = 300.0
"""Time limit in seconds for a login."""

REFRESH_SECONDS = 30.0
"""Time limit in seconds for each step of refreshing a token."""

EARLY_SECONDS = 10.0
"""So many seconds before it expires, an access token is refreshed."""

LOCK_SECONDS = 0.05
"""Seconds between two attempts to take the lock that another session has."""


class _Memory:
    """Storage for the SDK, which is written to the file afterwards."""

    def __init__(self, tokens: OAuthToken | None = None, client: OAuthClientInformationFull | None = None) -> None:
        self._tokens, self._client = tokens, client

    async def get_tokens(self) -> OAuthToken | None:
        return self._tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self._tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self._client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self._client = client_info


class StoredTokens(httpx2.Auth):
    """
    Sends a server's kept tokens, and refreshes them. Sessions that share them refresh one after the other.

    :param redactor: learns the tokens.
    """

    def __init__(self, file: LoginFile, url: Secret, redactor: Redactor) -> None:
        self._file, self._url, self._redactor = file, url, redactor
        self._known: Secret | None = None

    async def async_auth_flow(self, request: httpx2.Request) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        """
        :raises UnwantedAnswer: the authorization server failed.
        :raises ConfigurationError: the file is damaged.
        """
        login = self._read()
        for refused in (False, True):
            if login is not None and (refused or _is_old(login)):
                async with _held(self._file):
                    before, login = login, self._read()
                    if login == before:  # otherwise another session refreshed them, or there was a login or a logout
                        provider = _provider(login)
                        flow = provider.async_auth_flow(request)
                        try:
                            outgoing = await anext(flow)
                            while outgoing is not request:
                                answer = yield _checked(outgoing)
                                await answer.aread()
                                if answer.status_code >= 500:
                                    raise UnwantedAnswer(
                                        f"its authorization server answered with HTTP status {answer.status_code}"
                                    )
                                outgoing = await flow.asend(answer)
                        finally:
                            await flow.aclose()
                        login = self._keep(provider)
            request.headers.pop("Authorization", None)
            if login is not None:
                request.headers["Authorization"] = f"Bearer {json.loads(login.tokens.reveal())['access_token']}"
            again = not refused and login is not None and login.renewable
            request.extensions[AUTHORIZING] = again
            answer = yield request
            if answer.status_code != 401 or not again:
                return

    def _read(self) -> Login | None:
        login = self._file.read(self._url)
        if login is not None and login.tokens != self._known:
            self._known = login.tokens
            for secret in login.secrets():
                self._redactor.add(secret)
        return login

    def _keep(self, provider: OAuthClientProvider) -> Login | None:
        if not provider.context.is_token_valid():
            return None
        self._file.write(_login(provider, self._url))
        return self._read()


async def log_in(
    server: HttpServer,
    file: LoginFile,
    context: ssl.SSLContext,
    proxies: UpstreamProxies,
    clock: IReactorTime,
    redirect_uri: str,
    show: Callable[[str], None],
    redirected: Callable[[], Awaitable[str]],
) -> None:
    """
    Log in at a server, and keep the tokens.

    :param context: the TLS context that verifies the servers.
    :param proxies: upstream proxies.
    :param redirect_uri: the address to which the authorization server sends the browser.
    :param show: called with the address that a person opens in a browser.
    :param redirected: returns the address to which the browser was sent.
    :raises NotAllowed: the login was refused.
    :raises Unavailable: it failed, or took too long.
    :raises UsageError: the server needs no login, or the redirect is not valid.
    """
    shown = returned = False

    async def open_url(url: str) -> None:
        nonlocal shown
        if not keeps_secrets(url):
            raise UnwantedAnswer("its login page has no TLS")
        shown = True
        show(url)

    async def callback() -> AuthorizationCodeResult:
        nonlocal returned
        found = parse_redirect(await redirected())
        returned = True
        return AuthorizationCodeResult(code=found.code.reveal(), state=found.state, iss=found.issuer)

    metadata = OAuthClientMetadata(
        redirect_uris=[AnyUrl(redirect_uri)], client_name="IronCurtain", token_endpoint_auth_method="none"
    )
    provider = OAuthClientProvider(server.url.reveal(), metadata, _Memory(), open_url, callback)
    transport = BoundedTransport(ProxyingTransport(context, proxies), clock, lambda request, answer: None)
    headers = {name: secret.reveal() for name, secret in server.headers.items()}
    headers |= {"user-agent": "ironcurtain", "accept-encoding": "identity"}
    name = f"MCP server {server.name}"
    try:
        with anyio.fail_after(LOGIN_SECONDS):
            async with httpx2.AsyncClient(transport=transport, timeout=REFRESH_SECONDS, trust_env=False) as client:
                status = await _try(client, server, headers, provider)
    except TimeoutError:
        raise Unavailable(f"{name}: nobody logged in within {LOGIN_SECONDS:.0f} s; run the command again") from None
    except OAuthRegistrationError:
        raise Unavailable(f"{name}: its authorization server does not register clients") from None
    except OAuthTokenError:
        raise NotAllowed(f"{name}: its authorization server refused the login; log in again") from None
    except OAuthFlowError:
        if returned:
            raise NotAllowed(f"{name}: the redirect has a wrong state or issuer; log in again") from None
        raise Unavailable(f"{name}: what it says about its login is not valid") from None
    except UnwantedAnswer as e:
        raise Unavailable(f"{name}: {e}") from None
    except NoWayThrough as e:
        raise Unavailable(f"{name}: {e}") from None
    except httpx2.HTTPError:
        raise Unavailable(f"{name}: a server cannot be reached: check url, ca_file and the network") from None
    if not shown:
        if status == 401:
            raise Unavailable(f"{name}: refuses the request, but offers no login")
        raise UsageError(f"{name}: needs no login")
    if status in (401, 403):
        raise NotAllowed(f"{name}: refused the new tokens (HTTP status {status})")
    async with _held(file):
        file.write(_login(provider, server.url))


async def _try(
    client: httpx2.AsyncClient, server: HttpServer, headers: dict[str, str], provider: OAuthClientProvider
) -> int:
    parameters = {"protocolVersion": NEWEST_VERSION, "capabilities": {}, "clientInfo": IDENTITY}
    hello = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": parameters}
    headers = {**headers, "accept": "application/json, text/event-stream", "mcp-protocol-version": NEWEST_VERSION}
    url, auth = server.url.reveal(), _Checked(provider)
    answer = await client.post(url, json=hello, headers=headers, auth=auth, follow_redirects=True)
    if (session := answer.headers.get("mcp-session-id")) is not None:
        headers["mcp-session-id"] = session
        await client.delete(url, headers=headers, auth=_Checked(provider))
    return answer.status_code


class _Checked(httpx2.Auth):
    """The SDK's flow, with checked addresses."""

    def __init__(self, inner: OAuthClientProvider) -> None:
        self._inner = inner

    async def async_auth_flow(self, request: httpx2.Request) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        flow = self._inner.async_auth_flow(request)
        try:
            outgoing = await anext(flow)
            while True:
                answer = yield outgoing if outgoing is request else _checked(outgoing)
                if outgoing is not request or answer.status_code >= 400:
                    await answer.aread()
                outgoing = await flow.asend(answer)
        except StopAsyncIteration:
            return
        finally:
            await flow.aclose()


def _checked(request: httpx2.Request) -> httpx2.Request:
    if not keeps_secrets(str(request.url)):
        raise UnwantedAnswer("its authorization server has no TLS")
    request.extensions |= {AUTHORIZING: True, "timeout": httpx2.Timeout(REFRESH_SECONDS).as_dict()}
    return request


def _is_old(login: Login) -> bool:
    return login.expires is not None and login.expires <= time.time() + EARLY_SECONDS


@asynccontextmanager
async def _held(file: LoginFile) -> AsyncIterator[None]:
    lock = file.lock()
    while not lock.held:
        try:
            lock.acquire()
        except Held:
            await anyio.sleep(LOCK_SECONDS)
    try:
        yield
    finally:
        lock.release()


def _provider(login: Login) -> OAuthClientProvider:
    """:returns: the SDK's provider, for which the access token has expired."""
    client = OAuthClientInformationFull.model_validate_json(login.client.reveal())
    memory = _Memory(OAuthToken.model_validate_json(login.tokens.reveal()), client)
    provider = OAuthClientProvider(
        login.url.reveal(), OAuthClientMetadata(redirect_uris=[AnyUrl("http://127.0.0.1")]), memory
    )
    context = provider.context
    context.token_expiry_time = 1.0
    if login.metadata != "null":
        context.oauth_metadata = OAuthMetadata.model_validate_json(login.metadata)
    if login.resource != "null":
        context.protected_resource_metadata = ProtectedResourceMetadata.model_validate_json(login.resource)
    return provider


def _login(provider: OAuthClientProvider, url: Secret) -> Login:
    context = provider.context
    assert context.current_tokens is not None and context.client_info is not None
    metadata, resource = context.oauth_metadata, context.protected_resource_metadata
    return Login(
        url,
        Secret(context.current_tokens.model_dump_json(exclude_none=True)),
        Secret(context.client_info.model_dump_json(exclude_none=True)),
        context.token_expiry_time,
        "null" if metadata is None else metadata.model_dump_json(exclude_none=True),
        "null" if resource is None else resource.model_dump_json(exclude_none=True),
    )
