"""How Sphinx builds the documentation: ``sphinx-build -W -n docs docs/_build/html``."""

from __future__ import annotations

import re
from pathlib import Path

_package = Path(__file__).parent.parent / "ironcurtain" / "__init__.py"
_version = re.search(r'^__version__ = "(.+)"$', _package.read_text(), re.MULTILINE)
assert _version is not None

project = "IronCurtain"
release = version = _version[1]
project_copyright = "the IronCurtain contributors"

exclude_patterns = ["_build", "news"]
nitpicky = True
html_theme = "alabaster"
html_theme_options = {"description": "Run AI agents that you do not have to trust", "page_width": "1100px"}
html_sidebars = {"**": ["about.html", "navigation.html", "searchbox.html"]}
