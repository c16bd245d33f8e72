"""Write the texts of generated configuration files."""

from __future__ import annotations

import json
import re
from typing import Any

_UNQUOTED = re.compile(r'[\x00-\x1f\x7f"\\]')


def json_text(value: Any) -> str:
    """:returns: a value as the text of a JSON file, which is YAML as well."""
    return json.dumps(value, indent=2) + "\n"


def toml_string(text: str) -> str:
    """:returns: a text as a basic string of TOML."""
    return '"' + _UNQUOTED.sub(lambda match: f"\\u{ord(match[0]):04x}", text) + '"'
