"""What the daemon of a home knows of its fleet, and what lists lack now: sessions of machines that are not reached."""

from __future__ import annotations

import time

import msgspec

from ironcurtain.fleet.members import Known
from ironcurtain.home.layout import Home
from ironcurtain.text.display import one_line
from ironcurtain.text.quantities import counted


def lists_lack(home: Home) -> list[str]:
    """:returns: the sentences of :func:`lacking`, as far as the daemon of a home knows; none if it is no member."""
    known = read_known(home)
    return [] if known is None else lacking(known)


def read_known(home: Home) -> Known | None:
    """:returns: what the daemon of a home knows of its fleet; ``None`` if it is no member, or does not run."""
    try:
        return msgspec.json.decode(home.fleet_members.read_bytes(), type=Known)
    except FileNotFoundError:
        return None


def lacking(known: Known) -> list[str]:
    """:returns: a sentence for each host whose sessions are not listed, or one for all."""
    if known.unreached:
        since = time.strftime("%H:%M:%S", time.localtime(known.since))
        why = one_line(known.unreached, 300)
        return [f"Without sessions of other machines: the fleet's server is not reached since {since}: {why}."]
    return [
        f"Without {counted(each.member.sessions, 'session')} of {each.member.host}, which is lost: it was heard last "
        f"at {time.strftime('%H:%M:%S', time.localtime(each.seen_at))}."
        for each in known.members
        if each.lost and each.member.sessions
    ]
