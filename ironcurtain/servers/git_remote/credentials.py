"""
The user's credential for git in a sandbox, which answers for exactly one scheme, host and port.

Git asks its helpers also for the password of a proxy, of a client certificate, and of any host that it is led to. So
the helper in the sandbox compares what git asks for (gitcredentials(7)) with what the credential is for.
"""

from __future__ import annotations

import shlex
from urllib.parse import urlsplit

HELPER = "/tmp/credential-helper"
"""Where the sandbox has the helper."""

CREDENTIAL = "/tmp/credential"
"""Where it has the credential."""

_SCRIPT = """\
test "$1" = get || exit 0
protocol= host=
while IFS= read -r line; do
  case $line in
    protocol=*) protocol=${line#*=} ;;
    host=*) host=${line#*=} ;;
  esac
done
if test "$protocol://$host" = %s; then cat %s; fi
"""


def question(url: str) -> bytes:
    """:returns: the input of ``git credential fill`` for a repository's URL."""
    parts = urlsplit(url)
    return f"protocol={parts.scheme}\nhost={parts.netloc}\npath={parts.path.lstrip('/')}\n\n".encode()


def helper_files(url: str, printed: bytes) -> tuple[tuple[str, bytes], ...]:
    """
    :param url: the repository's.
    :param printed: output of ``git credential fill``; of its lines only user name and password are used.
    :returns: path and content of the files that the sandbox needs; empty if there is no password.
    """
    answer = [line for line in printed.split(b"\n") if line.startswith((b"username=", b"password="))]
    if not any(line.startswith(b"password=") for line in answer):
        return ()
    parts = urlsplit(url)
    script = _SCRIPT % (shlex.quote(f"{parts.scheme}://{parts.netloc}"), CREDENTIAL)
    return (HELPER, script.encode()), (CREDENTIAL, b"\n".join((*answer, b"")))


def helper_settings() -> bytes:
    """:returns: the lines of git's settings that name the helper."""
    return f'[credential]\n\thelper = "!sh {HELPER}"\n'.encode()
