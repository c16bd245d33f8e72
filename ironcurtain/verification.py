"""Whom a TLS client believes that is made with the standard library's module."""

from __future__ import annotations

import os
import ssl

from ironcurtain.errors import ConfigurationError


def believe(context: ssl.SSLContext, ca_file: str) -> None:
    """
    Have a client's context verify servers by the system's authorities, and by names that certificates give for that.

    :param context: of ``PROTOCOL_TLS_CLIENT``, which verifies certificates and names.
    :param ca_file: certificates (PEM) to trust besides the system's; empty for none.
    :raises ConfigurationError: that file cannot be used.
    """
    context.hostname_checks_common_name = False
    context.set_default_verify_paths()
    if not ca_file:
        return
    try:
        context.load_verify_locations(os.path.expanduser(ca_file))
    except OSError:  # what this module raises too
        raise ConfigurationError(ca_file, "cannot be read, or holds no PEM certificate", field="ca_file") from None
