"""Parse TOML, JSON and YAML, with errors that name file and line."""

from __future__ import annotations

import json
import math
import re
import tomllib
from typing import Any

import msgspec

from ironcurtain.errors import ConfigurationError
from ironcurtain.home.lines import Place, json_places
from ironcurtain.text.decoding import decode_text

_TOML_PLACE = re.compile(r" \(at line (\d+), column \d+\)$")
_TOML_END = " (at end of document)"
_COMMENT = re.compile(r"_comment|//|#", re.IGNORECASE)
NESTING_LIMIT = 50
"""Most levels of YAML (settings have about five): the time to parse it grows with their square."""

_TWICE = "Cannot overwrite a value"
"""What :mod:`tomllib` says of a name that has a value, and then another one or a table."""


def parse_toml(source: str, text: str) -> dict[str, Any]:
    """
    :param source: the file's name, for messages.
    :raises ConfigurationError: the text is not TOML.
    """
    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as e:
        place = _TOML_PLACE.search(str(e))
        line = int(place.group(1)) if place else len(text.splitlines()) if str(e).endswith(_TOML_END) else None
        detail = _TOML_PLACE.sub("", str(e)).removesuffix(_TOML_END)
        if detail == _TWICE:
            detail = "a name here has a value above already: write one value, or one table, for it"
        raise ConfigurationError(source, f"not TOML: {detail}", line=line) from None


def parse_json(source: str, data: bytes | str) -> Any:
    """
    :param source: the file's name, for messages.
    :param data: JSON; of a file that a person writes, what :func:`~ironcurtain.home.json_comments.plain_json` returns.
    :raises ConfigurationError: it is not JSON, or an object has a key twice: parsers use either the first or the last,
        so that a reviewer may see the other one. Texts under a key such as ``_comment`` or ``//`` may be repeated.
    """
    text = decode_text(source, data) if isinstance(data, bytes) else data
    if not text.strip():
        raise ConfigurationError(source, "is empty")

    def members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            comments = {key for key in found if _COMMENT.match(key) and all(_is_text(key, pair) for pair in pairs)}
            seen = [key for key, _ in pairs if key not in comments]
            if (twice := next((key for number, key in enumerate(seen) if key in seen[:number]), None)) is None:
                return found
            detail = f"{json.dumps(twice)} occurs twice in one object: remove one of them"
            raise ConfigurationError(source, detail, line=_line_of_second(text, twice))
        return found

    try:
        json.loads(text, object_pairs_hook=members)  # msgspec silently uses the last one
        return msgspec.json.decode(text)
    except json.JSONDecodeError as e:
        raise ConfigurationError(source, f"not JSON: {e.msg}", line=e.lineno) from None
    except (ValueError, msgspec.DecodeError, RecursionError) as e:
        raise ConfigurationError(source, f"not JSON: {e}") from None


def parse_yaml(source: str, text: str) -> Any:
    """
    :param source: the file's name, for messages.
    :raises ConfigurationError: the text is not YAML, or uses aliases, with which a short text can have any size.
    """
    import yaml  # type: ignore[import-untyped, unused-ignore]

    try:
        require_bounded(source, text)
        return yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, RecursionError) as e:
        raise not_yaml(source, e) from None


def require_bounded(source: str, text: str) -> None:
    """
    Check that YAML takes time and memory by its length only, before it is parsed.

    :raises ConfigurationError: it has aliases, so that it can have any size, or contain itself; or it is nested more
        than :data:`NESTING_LIMIT` times.
    :raises yaml.YAMLError: the text is not YAML.
    """
    import yaml

    flow_begin = (yaml.FlowSequenceStartToken, yaml.FlowMappingStartToken)
    begin = (*flow_begin, yaml.BlockSequenceStartToken, yaml.BlockMappingStartToken)
    end = (yaml.FlowSequenceEndToken, yaml.FlowMappingEndToken, yaml.BlockEndToken)
    depth = 0
    for token in yaml.scan(text, yaml.SafeLoader):
        if isinstance(token, yaml.AliasToken):
            raise ConfigurationError(source, "has an alias: write its value out", line=token.start_mark.line + 1)
        depth += isinstance(token, begin) - isinstance(token, end)
        if depth > NESTING_LIMIT:
            raise ConfigurationError(source, "is nested too deeply", line=token.start_mark.line + 1)


def not_yaml(source: str, error: Exception) -> ConfigurationError:
    """:param error: what the library raised about a text."""
    mark = getattr(error, "problem_mark", None)
    detail = getattr(error, "problem", None) or str(error)
    return ConfigurationError(source, f"not YAML: {detail}", line=mark.line + 1 if mark else None)


def as_json(value: Any) -> Any:
    """
    :param value: what was parsed of TOML or YAML.
    :returns: the value as JSON has it: names and dates are texts, and numbers without end are ``None``.
    """
    if isinstance(value, dict):
        names = (key if isinstance(key, str) else json.dumps(key, default=str) for key in value)
        return dict(zip(names, map(as_json, value.values()), strict=True))
    if isinstance(value, list | tuple | set):
        return list(map(as_json, value))
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if value is None or isinstance(value, str | int | float) else str(value)


def _is_text(key: str, pair: tuple[str, Any]) -> bool:
    return pair[0] != key or isinstance(pair[1], str)


def _line_of_second(text: str, key: str) -> int | None:
    seen: set[Place] = set()
    for number, place in json_places(text):
        if place[-1] == key and place in seen:
            return number
        seen.add(place)
    return None
