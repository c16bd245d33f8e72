"""
The keys that may log in: one per line, in the format of ``authorized_keys`` (sshd(8)).

A line is ``roles="view,approve" ssh-ed25519 AAAA... name``. The roles are the only supported option: a line with
another option would mean less, or more, than its writer intended, so it is ignored.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Iterator

import msgspec
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from cryptography.hazmat.primitives.serialization import load_ssh_public_key

from ironcurtain.errors import UsageError
from ironcurtain.operations import Principal, Role

SIGNATURES = {
    "ssh-ed25519": ("ssh-ed25519",),
    "sk-ssh-ed25519@openssh.com": ("sk-ssh-ed25519@openssh.com",),
    "ecdsa-sha2-nistp256": ("ecdsa-sha2-nistp256",),
    "ecdsa-sha2-nistp384": ("ecdsa-sha2-nistp384",),
    "ecdsa-sha2-nistp521": ("ecdsa-sha2-nistp521",),
    "sk-ecdsa-sha2-nistp256@openssh.com": ("sk-ecdsa-sha2-nistp256@openssh.com",),
    "ssh-rsa": ("rsa-sha2-512", "rsa-sha2-256"),
}
"""The supported key types, with their signature algorithms: for RSA none with SHA-1 (RFC 8332)."""

RSA_BITS = 2048
"""Minimum size in bits of an RSA key (NIST SP 800-131A)."""

LINE_LIMIT = 16384
"""Maximum length in characters of a line; an RSA key of 16384 bits has some 2800."""

_CERTIFICATE = "-cert-v01@openssh.com"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@+-]{0,63}")
_OPTIONS = re.compile(r'(?:[^\s"]|"(?:[^"\\]|\\.)*")+(?=\s|$)')
_ROLES = re.compile(r'roles="([a-z, ]*)"')


class WrongKey(UsageError):
    """A line is not the public key of somebody who may log in."""


class AuthorizedKey(msgspec.Struct, frozen=True):
    """
    A key that may log in.

    :param name: name of its holder, for the audit log.
    :param type: one of :data:`SIGNATURES`.
    :param blob: the key as it is sent (RFC 4253, section 6.6).
    """

    name: str
    roles: frozenset[Role]
    type: str
    blob: bytes

    @property
    def fingerprint(self) -> str:
        """The fingerprint, as ``ssh-keygen -l`` shows it."""
        return fingerprint(self.blob)

    @property
    def principal(self) -> Principal:
        """The principal of this key."""
        return Principal(self.name, self.roles)

    @property
    def line(self) -> str:
        """The line of the file, without its end."""
        roles = ",".join(role for role in Role if role in self.roles)
        return f'roles="{roles}" {self.type} {base64.b64encode(self.blob).decode()} {self.name}'


class KeyProblem(msgspec.Struct, frozen=True):
    """An invalid line, with the reason."""

    line: int
    what: str


class KeyList(msgspec.Struct, frozen=True):
    """The contents of a file."""

    keys: tuple[AuthorizedKey, ...] = ()
    problems: tuple[KeyProblem, ...] = ()

    def find(self, blob: bytes) -> AuthorizedKey | None:
        """:returns: the key with this blob, if it is listed."""
        return next((key for key in self.keys if key.blob == blob), None)


def fingerprint(blob: bytes) -> str:
    """:returns: the fingerprint of a public key in OpenSSH's format."""
    return "SHA256:" + base64.b64encode(hashlib.sha256(blob).digest()).decode().rstrip("=")


def parse(text: str) -> KeyList:
    """
    Parse a complete file. An invalid line permits no login, and does not affect other lines.

    A key or a name on two lines is invalid on both: principal and roles would be ambiguous.
    """
    found: list[tuple[int, AuthorizedKey]] = []
    problems: list[KeyProblem] = []
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        try:
            found.append((number, parse_line(line)))
        except WrongKey as e:
            problems.append(KeyProblem(number, str(e)))
    twice = _twice(key.blob for _, key in found) | _twice(key.name for _, key in found)
    for number, key in found:
        if key.blob in twice or key.name in twice:
            problems.append(
                KeyProblem(number, f"the key or the name {key.name} occurs on another line, too: remove one")
            )
    keys = tuple(key for _, key in found if key.blob not in twice and key.name not in twice)
    return KeyList(keys, tuple(sorted(problems, key=lambda problem: problem.line)))


def parse_line(line: str) -> AuthorizedKey:
    """
    Parse one line.

    :raises WrongKey: it does not consist of roles, type, key and name.
    """
    if len(line) > LINE_LIMIT:
        raise WrongKey(f"is longer than {LINE_LIMIT} characters")
    if line.split()[0] in SIGNATURES:
        raise WrongKey('does not say what the key may do: begin it with roles="view,approve"')
    options = _OPTIONS.match(line.strip())
    if options is None:
        raise WrongKey("has a quotation mark too many or too few")
    roles = _roles(options.group())
    return public_key(line.strip()[options.end() :], roles)


def public_key(text: str, roles: frozenset[Role], name: str = "") -> AuthorizedKey:
    """
    Parse a public key, as in a ``.pub`` file.

    :param name: replaces the comment in it.
    :raises WrongKey: it is not a supported key.
    """
    words = text.split()
    if words and words[0].endswith(_CERTIFICATE):
        raise WrongKey("is a certificate: give the public key that it was made for")
    if len(words) < 2 or words[0] not in SIGNATURES:
        raise WrongKey(f"needs a type and a key; the type is one of {', '.join(SIGNATURES)}")
    named = name or " ".join(words[2:])
    if not _NAME.fullmatch(named):
        raise WrongKey("needs a name at its end: letters, digits and . _ @ + -, at most 64 of them, without spaces")
    return AuthorizedKey(named, roles, words[0], _blob(words[0], words[1]))


def read_roles(text: str) -> frozenset[Role]:
    """
    :param text: names of roles, separated by commas.
    :raises WrongKey: there is none, or one that does not exist.
    """
    names = [name.strip() for name in text.split(",")]
    if unknown := [name for name in names if name not in frozenset(Role)]:
        raise WrongKey(f"there is no role {unknown[0]!r}: the roles are {', '.join(Role)}")
    return frozenset(Role(name) for name in names)


def _roles(options: str) -> frozenset[Role]:
    match = _ROLES.fullmatch(options)
    if match is None:
        others = [name for name in _option_names(options) if name != "roles"]
        raise WrongKey(
            f"the option {others[0][:40]!r} is not supported, so this line permits no login: the only option is roles"
            if others
            else 'needs its roles once, as in roles="view,approve"'
        )
    return read_roles(match.group(1))


def _option_names(options: str) -> Iterator[str]:
    for option in re.findall(r'(?:[^,"]|"(?:[^"\\]|\\.)*")+', options):
        yield option.partition("=")[0]


def _blob(type_: str, encoded: str) -> bytes:
    try:
        blob = base64.b64decode(encoded, validate=True)
        key = load_ssh_public_key(f"{type_} {encoded}".encode())
    except (ValueError, UnsupportedAlgorithm):
        raise WrongKey("the key is damaged: copy the whole line of the .pub file again") from None
    if isinstance(key, RSAPublicKey) and key.key_size < RSA_BITS:
        raise WrongKey(f"the RSA key has {key.key_size} bits, which is too few: make one with ssh-keygen -t ed25519")
    return blob


def _twice(values: Iterable[str | bytes]) -> set[str | bytes]:
    return {value for value, count in Counter(values).items() if count > 1}
