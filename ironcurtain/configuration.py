"""Read the settings as commands and the daemon go by them, with the tables of providers judged."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from ironcurtain.home.layout import read_configuration
from ironcurtain.home.settings import Effective, load
from ironcurtain.mitm_proxy.providers import check_providers


def read_settings(path: Path, environ: Mapping[str, str]) -> Effective:
    """
    :param path: the file; it need not exist.
    :returns: the settings in force.
    :raises ConfigurationError: the file cannot be read, a value is unknown or does not fit, or no session could start
        with a provider as it is described.
    """
    text = read_configuration(path)
    effective = load(str(path), text, environ)
    check_providers(effective.settings.providers, str(path), text or "")
    return effective
