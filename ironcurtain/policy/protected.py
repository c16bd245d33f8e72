"""Protected paths, to which no rule can allow access."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable

from ironcurtain.files.links import directories_above
from ironcurtain.policy.files import FileView
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
"""Where programs store keys, passwords, cookies and tokens, relative to a user's home directory."""

OWN_PROCESS = "/proc/self"
"""Memory, environment and open files of the process that has the keys (proc(5))."""


def always_protected(home: str, ironcurtain_home: str, *configuration: str) -> tuple[str, ...]:
    """
    The paths that are protected in every session.

    :param home: absolute path of the user's home directory.
    :param ironcurtain_home: absolute path of IronCurtain's home. A workspace inside it is not protected.
    :param configuration: absolute paths of settings, policies and annotations outside IronCurtain's home.
    :returns: absolute paths of files and directories, which need not exist.
    """
    stores = (f"{home}/{store}" for store in CREDENTIAL_STORES)
    return (ironcurtain_home, *configuration, *stores, OWN_PROCESS)


def _folded(path: str) -> str:
    return path.lower() if path.isascii() else unicodedata.normalize("NFC", path).casefold()


class Protection:
    """
    The protected paths of one session.

    A workspace inside a protected directory is not protected, but a protected path inside the workspace is.

    :param paths: real paths.
    """

    __slots__ = ("_above", "_all", "_inside", "_workspace")

    def __init__(self, paths: Iterable[str], workspace: Root) -> None:
        self._workspace = workspace
        self._all: dict[str, list[str]] = {}
        self._inside: dict[str, list[str]] = {}
        self._above: dict[str, str] = {}
        for path in paths:
            for above in directories_above(path):
                self._above.setdefault(above, path)
            self._all.setdefault(_folded(path), []).append(path)
            if workspace.holds(path):
                self._inside.setdefault(_folded(path), []).append(path)

    def covering(self, path: str, files: FileView) -> str | None:
        """
        :param path: a real path.
        :param files: tells which names are those of one file.
        :returns: the protected path that is the same as the path or contains it; ``None`` if there is none.
        """
        roots = self._inside if self._workspace.holds(path) else self._all
        if not roots:
            return None
        folded = _folded(path)
        while folded:
            for root in roots.get(folded, ()):
                if _same(root, path, folded.count("/"), files):
                    return root
            folded = folded[: folded.rfind("/")]
        return "/" if "/" in roots else None

    def inside(self, path: str) -> str | None:
        """
        :param path: a real path.
        :returns: a protected path below it, which deleting it would delete; ``None`` if there is none.
        """
        return self._above.get(path)


def may_hold(root: Root, path: str, files: FileView) -> bool:
    """
    :param path: a real path.
    :param files: tells which names are those of one file.
    :returns: whether the path is, or can be by another name, the root or below it.
    """
    if root.holds(path):
        return True
    folded, at = _folded(path), _folded(root.path)
    return f"{folded}/".startswith(f"{at}/") and _same(root.path, path, at.count("/"), files)


def _same(root: str, path: str, depth: int, files: FileView) -> bool:
    """
    Whether the first ``depth`` components of a path are the protected path.

    The two are equal except for case and Unicode normalization. File systems that ignore these refer to the same file,
    others usually to different ones. If neither exists, this is unknown, and the path counts as protected.
    """
    start = "/".join(path.split("/")[: depth + 1])
    return start == root or files.same(root, start)
