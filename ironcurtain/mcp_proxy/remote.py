"""What it takes to reach a server by HTTP: its headers, whom its TLS is to be believed, and the SDK."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, urlsplit

from twisted.internet.interfaces import IReactorTime
from twisted.internet.threads import deferToThread

from ironcurtain.errors import Unavailable
from ironcurtain.http.trust import ssl_context
from ironcurtain.mcp_proxy.channel import MakeChannel
from ironcurtain.mcp_proxy.servers_config import HttpServer, is_header_value
from ironcurtain.secrets.redaction import Redactor, Secret

if TYPE_CHECKING:
    from ironcurtain.mcp_proxy.http_channel import HttpChannel


async def way_to(
    server: HttpServer, secrets: Mapping[str, Secret], redactor: Redactor, clock: IReactorTime
) -> MakeChannel:
    """
    :param secrets: header name to what its ``headers_command`` gave.
    :param redactor: learns what the headers and the address hold that may be a key.
    :raises Unavailable: a header cannot be sent.
    :raises ConfigurationError: ``ca_file`` cannot be used.
    """
    headers = {**server.headers, **secrets}
    for name, secret in headers.items():
        if not is_header_value(secret.reveal()):
            raise Unavailable(f"MCP server {server.name}: what its command for the header {name} prints cannot be sent")
        for part in (secret.reveal(), *secret.reveal().split()):  # also without a scheme such as Bearer
            redactor.add(Secret(part))
    for name, value in parse_qsl(urlsplit(server.url.reveal()).query, keep_blank_values=True):
        redactor.add(Secret(value or name))
    context = ssl_context(server.ca_file)
    channel = await deferToThread(_channel_class)
    return partial(channel, server.url, headers, context, clock)


def _channel_class() -> type[HttpChannel]:
    # In a thread: importing the SDK takes a second, in which others would wait for the reactor.
    from ironcurtain.mcp_proxy.http_channel import HttpChannel

    return HttpChannel
