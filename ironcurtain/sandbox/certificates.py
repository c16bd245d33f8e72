"""The certificates that programs in sandboxes trust: the system's, and that of IronCurtain's proxy."""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from functools import lru_cache

BUNDLES = (
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
)
"""Where systems have all certificates in one file: Debian and Arch, Fedora, openSUSE, Alpine."""

VARIABLES = (
    "AWS_CA_BUNDLE",
    "CARGO_HTTP_CAINFO",
    "CURL_CA_BUNDLE",
    "DENO_CERT",
    "GIT_SSL_CAINFO",
    "NODE_EXTRA_CA_CERTS",
    "PIP_CERT",
    "REQUESTS_CA_BUNDLE",
    "SSL_CERT_FILE",
    "YARN_HTTPS_CA_FILE_PATH",
    "npm_config_cafile",
)
"""Variables by which programs find that file. Some read none of them, but know the place."""


def bundle(authority: bytes, places: Sequence[str] = BUNDLES) -> tuple[str, bytes]:
    """
    :param authority: a certificate in PEM.
    :returns: the place of the system's certificates, and these with the given one.
    """
    place = next((path for path in map(os.path.realpath, places) if os.path.isfile(path)), places[0])
    try:
        with open(place, "rb") as file:
            system = file.read()
    except FileNotFoundError:
        system = b""
    return place, system.rstrip(b"\n") + b"\n" + authority


@lru_cache(1)
def java_trust_store(certificates: bytes) -> bytes:
    """
    :param certificates: a bundle in PEM.
    :returns: the same as a key store without a password, since Java reads neither such files nor :data:`VARIABLES`.
    """
    from cryptography import x509
    from cryptography.hazmat.primitives.serialization import NoEncryption, pkcs12

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of old authorities with unusual certificates
        found = x509.load_pem_x509_certificates(certificates)
        named = [pkcs12.PKCS12Certificate(each, f"{number}".encode()) for number, each in enumerate(found)]
        return pkcs12.serialize_java_truststore(named, NoEncryption())


def variables(place: str) -> dict[str, str]:
    """:returns: :data:`VARIABLES`, with a place."""
    return dict.fromkeys(VARIABLES, place)
