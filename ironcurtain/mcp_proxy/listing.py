"""Fetch a whole list from a server, page by page. Pure."""

from __future__ import annotations

from typing import Any

from ironcurtain.jsonrpc import codec
from ironcurtain.mcp_proxy.backend import Backend, BackendFailed, RpcError
from ironcurtain.mcp_proxy.catalogue import Kind

PAGES = 500
"""Most pages of one list that are fetched (our choice)."""

ENTRIES = 20_000
"""Most entries of one list that are taken (our choice)."""


async def fetch_all(backend: Backend, kind: Kind) -> list[Any]:
    """
    :returns: the entries as they came; none if the server does not have such a list.
    :raises BackendFailed: the server does not answer, or its list does not end.
    """
    if backend.introduction is None or kind.capability not in backend.introduction.capabilities:
        return []
    entries: list[Any] = []
    cursor: str | None = None
    seen: set[str] = set()
    for _ in range(PAGES):
        try:
            page = codec.decode(await backend.request(kind.method, None if cursor is None else {"cursor": cursor}))
        except RpcError:
            return entries
        found = page.get(kind.member) if isinstance(page, dict) else None
        entries += found if isinstance(found, list) else []
        cursor = page.get("nextCursor") if isinstance(page, dict) else None
        if not isinstance(cursor, str) or not cursor:
            return entries
        if cursor in seen or len(entries) > ENTRIES:
            break
        seen.add(cursor)
    raise BackendFailed(f"MCP server {backend.name}: its answers to {kind.method} do not end")
