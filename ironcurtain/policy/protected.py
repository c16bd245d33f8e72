"""What no rule can free: the paths that are always protected, and whether a path is one of them."""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Iterable

from ironcurtain.policy.paths import Root

CREDENTIAL_STORES = (
    ".ssh",
    ".gnupg",
    ".aws",
    ".azure",
    ".boto",
    ".s3cfg",
    ".config/gcloud",
    ".config/gh",
    ".config/glab-cli",
    ".config/hub",
    ".config/op",
    ".config/rclone",
    ".config/sops",
    ".config/doctl",
    ".config/containers/auth.json",
    ".config/git/credentials",
    ".config/pip/pip.conf",
    ".config/pypoetry/auth.toml",
    ".config/github-copilot",
    ".kube",
    ".docker/config.json",
    ".netrc",
    "_netrc",
    ".authinfo",
    ".authinfo.gpg",
    ".git-credentials",
    ".npmrc",
    ".yarnrc.yml",
    ".pypirc",
    ".pip/pip.conf",
    ".cargo/credentials",
    ".cargo/credentials.toml",
    ".gem/credentials",
    ".m2/settings.xml",
    ".gradle/gradle.properties",
    ".terraform.d/credentials.tfrc.json",
    ".vault-token",
    ".pgpass",
    ".my.cnf",
    ".password-store",
    ".local/share/keyrings",
    ".local/share/kwalletd",
    ".claude/.credentials.json",
    ".claude.json",
    ".codex/auth.json",
    ".gemini/oauth_creds.json",
    ".local/share/opencode/auth.json",
    ".mozilla",
    ".thunderbird",
    ".config/google-chrome",
    ".config/chromium",
    ".config/BraveSoftware",
    ".config/microsoft-edge",
    ".config/vivaldi",
    ".config/opera",
    "snap/firefox",
    "snap/chromium",
    ".var/app/org.mozilla.firefox",
    ".var/app/com.google.Chrome",
    ".var/app/org.chromium.Chromium",
    "Library/Keychains",
    "Library/Cookies",
    "Library/Safari",
    "Library/Application Support/Firefox",
    "Library/Application Support/Google/Chrome",
    "Library/Application Support/Chromium",
    "Library/Application Support/BraveSoftware",
    "Library/Application Support/Microsoft Edge",
)
"""Where programs keep keys, passwords, cookies and tokens, below a user's home."""

OWN_PROCESS = "/proc/self"
"""Memory, environment and open files of the process that holds the keys (proc(5))."""


def always_protected(home: str, ironcurtain_home: str, *configuration: str) -> tuple[str, ...]:
    """
    The paths that are protected in every session.

    :param home: absolute path of the user's home.
    :param ironcurtain_home: absolute path of our own directory; a workspace inside it stays free.
    :param configuration: absolute paths of files with settings, policies or annotations that lie elsewhere.
    :returns: absolute paths of files and directories, which need not exist.
    """
    stores = (f"{home}/{store}" for store in CREDENTIAL_STORES)
    return (ironcurtain_home, *configuration, *stores, OWN_PROCESS)


def _folded(path: str) -> str:
    return path.lower() if path.isascii() else unicodedata.normalize("NFC", path).casefold()


class Protection:
    """
    The protected paths of one session.

    The workspace is free although it lies in a protected directory; a protected path in the workspace is not.

    :param paths: real paths.
    """

    __slots__ = ("_all", "_inside", "_workspace")

    def __init__(self, paths: Iterable[str], workspace: Root) -> None:
        self._workspace = workspace
        self._all: dict[str, list[str]] = {}
        self._inside: dict[str, list[str]] = {}
        for path in paths:
            self._all.setdefault(_folded(path), []).append(path)
            if workspace.holds(path):
                self._inside.setdefault(_folded(path), []).append(path)

    def covering(self, path: str) -> str | None:
        """
        :param path: a real path.
        :returns: the protected path that it is, or lies below; ``None`` if it is free.
        """
        roots = self._inside if self._workspace.holds(path) else self._all
        if not roots:
            return None
        folded = _folded(path)
        while folded:
            for root in roots.get(folded, ()):
                if _same(root, path, folded.count("/")):
                    return root
            folded = folded[: folded.rfind("/")]
        return "/" if "/" in roots else None

    def inside(self, path: str) -> str | None:
        """
        :param path: a real path.
        :returns: a protected path below it, which would go if it went; ``None`` if there is none.
        """
        root = Root(path)
        return next((real for same in self._all.values() for real in same if real != path and root.holds(real)), None)


def _same(root: str, path: str, depth: int) -> bool:
    """
    Whether a path's first ``depth`` components are the protected path.

    They are equal but for case or Unicode form: on file systems that ignore these they are the same file, on others
    usually not. Where neither exists nobody can tell, and it counts as protected.
    """
    start = "/".join(path.split("/")[: depth + 1])
    if start == root:
        return True
    try:
        there = os.stat(start)
    except (OSError, ValueError):
        return not os.path.lexists(root)
    try:
        return os.path.samestat(os.stat(root), there)
    except (OSError, ValueError):
        return False
