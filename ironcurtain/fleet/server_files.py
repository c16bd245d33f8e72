"""
The files of the fleet's server of NATS: its configuration, and the certificate of its TLS.

Each host has a name and a password of its own there, and may publish only what is its own: streams to others, its
statement, and its tasks. Nothing else depends on that: see :mod:`ironcurtain.fleet.sealed`.
"""

from __future__ import annotations

import datetime
import ipaddress
import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from ironcurtain.fleet.carried import SUBJECTS
from ironcurtain.fleet.nats import BUCKET

HEADS_STREAM, HEADS_SUBJECTS = "ironcurtain_heads", "ironcurtain.heads"
"""The stream of the heads of audit logs, and what they are published below, by host."""

QUEUE, TAKERS = "ironcurtain_tasks", "takers"
"""The stream of tasks that wait for a host, and its consumer, which all hosts share."""

TASK_SUBJECTS = "ironcurtain.task"
"""Where tasks are offered: ``ironcurtain.task.HOST.ID``, with the host on which they were given."""

LIFETIME = datetime.timedelta(days=3650)
"""Of the certificate; ``ironcurtain fleet init`` in a new home makes another."""

BACKDATED = datetime.timedelta(days=1)
"""How long before now it begins, for hosts whose clocks are slow."""


def certificate(addresses: Sequence[str], now: datetime.datetime) -> tuple[bytes, bytes]:
    """
    :param addresses: names and IP addresses by which hosts reach the server.
    :returns: a certificate that signs itself, and its key, as PEM. Hosts get the certificate with their credentials.
    """
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "IronCurtain fleet")])
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - BACKDATED)
        .not_valid_after(now + LIFETIME)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(x509.SubjectAlternativeName([_alternative(address) for address in addresses]), critical=False)
        .sign(key, hashes.SHA256())
    )
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return made.public_bytes(Encoding.PEM), private


def configuration(listen: str, directory: Path, passwords: Mapping[str, str]) -> str:
    """
    :param listen: address and port.
    :param directory: where the certificate, its key and the server's data are.
    :param passwords: of each host.
    :returns: the text of ``nats-server.conf``.
    """
    files = {"cert_file": str(directory / "server.crt"), "key_file": str(directory / "server.key")}
    users = [
        {"user": host, "password": password, "permissions": permissions(host)}
        for host, password in sorted(passwords.items())
    ]
    accounts = {
        "FLEET": {"jetstream": "enabled", "users": users},
        "SYS": {"users": []},
    }
    parts = (
        f"listen: {json.dumps(listen)}",
        "server_name: fleet",
        f"tls: {json.dumps(files)}",
        f"jetstream: {json.dumps({'store_dir': str(directory / 'data'), 'max_mem': '64M', 'max_file': '1G'})}",
        f"accounts: {json.dumps(accounts, indent=2)}",
        "system_account: SYS",
    )
    return "# Written by `ironcurtain fleet`, which writes it again when a host is added.\n" + "\n".join(parts) + "\n"


def permissions(host: str) -> dict[str, dict[str, list[str]]]:
    """:returns: what the server permits a host: answers go to an inbox that no other may read."""
    stream = f"KV_{BUCKET}"
    publish = [
        f"{SUBJECTS}.>",
        f"$KV.{BUCKET}.{host}",
        "$JS.API.INFO",
        f"$JS.API.STREAM.INFO.{stream}",
        f"$JS.API.STREAM.CREATE.{stream}",
        f"$JS.API.CONSUMER.*.{stream}",
        f"$JS.API.CONSUMER.*.{stream}.>",
        f"$JS.ACK.{stream}.>",
        f"$JS.FC.{stream}.>",
        f"{HEADS_SUBJECTS}.{host}",
        f"$JS.API.STREAM.INFO.{HEADS_STREAM}",
        f"$JS.API.STREAM.CREATE.{HEADS_STREAM}",
        f"$JS.API.CONSUMER.INFO.{HEADS_STREAM}.{host}",
        f"$JS.API.CONSUMER.CREATE.{HEADS_STREAM}.{host}.>",
        f"$JS.API.CONSUMER.DURABLE.CREATE.{HEADS_STREAM}.{host}",
        f"$JS.API.CONSUMER.MSG.NEXT.{HEADS_STREAM}.{host}",
        f"$JS.ACK.{HEADS_STREAM}.{host}.>",
        f"{TASK_SUBJECTS}.{host}.*",
        f"$JS.API.STREAM.INFO.{QUEUE}",
        f"$JS.API.STREAM.CREATE.{QUEUE}",
        f"$JS.API.CONSUMER.DURABLE.CREATE.{QUEUE}.{TAKERS}",
        f"$JS.API.CONSUMER.CREATE.{QUEUE}.{TAKERS}",
        f"$JS.API.CONSUMER.MSG.NEXT.{QUEUE}.{TAKERS}",
        f"$JS.ACK.{QUEUE}.{TAKERS}.>",
    ]
    return {"publish": {"allow": publish}, "subscribe": {"allow": [f"{SUBJECTS}.{host}.*", f"{inbox(host)}.>"]}}


def inbox(host: str) -> str:
    """:returns: where the server's answers to a host go."""
    return f"_INBOX.{host}"


def _alternative(address: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(address))
    except ValueError:
        return x509.DNSName(address)
