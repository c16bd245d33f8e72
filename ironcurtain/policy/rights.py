"""Whether the permissions of files let an account use a path."""

from __future__ import annotations

import os
from pathlib import PurePath

from ironcurtain.platform.files import has_access_list
from ironcurtain.process.accounts import READ, SEARCH, WRITE, Account


def inaccessible_path(account: Account, root: str, path: str, role: str) -> str:
    """
    Find what denies an account access to a path.

    :param root: real path of the directory where the server's access starts; permissions above it do not matter.
    :param path: the root, or a real path below it.
    :returns: the file or directory that the account cannot use as ``role`` needs it. Empty if access is permitted or
        cannot be determined, because a path has an access control list, does not exist or changes.
    """
    *above, last = (*reversed([parent for parent in PurePath(path).parents if parent.is_relative_to(root)]), path)
    try:
        for place in above:
            if not _may(account, SEARCH, place):
                return str(place)
        parent = PurePath(path).parent
        if role == "read-path":
            return "" if _may(account, READ, last) else path
        if role == "write-path" and os.path.lexists(path) and _may(account, WRITE, path):
            return ""
        within = path == root or _may(account, WRITE | SEARCH, parent)
        return "" if within else str(parent)
    except OSError:
        return ""


def _may(account: Account, wanted: int, path: str | PurePath) -> bool:
    return account.may(wanted, os.lstat(path)) or has_access_list(path)
