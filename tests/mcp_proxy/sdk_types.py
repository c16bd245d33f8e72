"""What the official SDK's own models say of lists and results."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st
from mcp_types.methods import parse_server_result
from mcp_types.version import KNOWN_PROTOCOL_VERSIONS

from ironcurtain.jsonrpc import codec
from ironcurtain.mcp_proxy.envelope import completed

scalars = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5)
)
values: st.SearchStrategy[Any] = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


def accept(method: str, result: Any) -> None:
    """:raises pydantic.ValidationError: the SDK's client of some revision refuses a result."""
    for version in KNOWN_PROTOCOL_VERSIONS:
        parse_server_result(method, version, codec.decode(completed(method, codec.encode(result))))


def objects(members: dict[str, st.SearchStrategy[Any]]) -> st.SearchStrategy[Any]:
    """:returns: objects in which each member is right, wrong or missing; and now and then something else."""
    fields = {name: right | values for name, right in members.items()}
    return st.fixed_dictionaries({}, optional=fields) | values
