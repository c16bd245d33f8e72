"""What the account of a session may do with files that are another's: what it may not is put before nobody."""

from __future__ import annotations

import os
from pathlib import PurePath

from ironcurtain.process.accounts import READ, SEARCH, WRITE, Account

_ACCESS_LIST = "system.posix_acl_access"


def closed_at(account: Account, root: str, path: str, role: str) -> str:
    """
    :param root: real path of the directory from which the server goes on; what lies above it does not matter.
    :param path: a real path below it, or the same.
    :returns: the file or directory that the account may not use in this way; empty if there is none, or if owner,
        group and mode do not tell, since there is an access list.
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
    except OSError:  # it is not there, or changes
        return ""


def _may(account: Account, wanted: int, path: str | PurePath) -> bool:
    return account.may(wanted, os.lstat(path)) or _ACCESS_LIST in os.listxattr(path, follow_symlinks=False)
