"""What programs do that pack and unpack files. The text of a command does not show which files an archive has in it."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable

from msgspec.structs import replace

from ironcurtain.command_rules.effect import HERE, Effects, operands
from ironcurtain.command_rules.risk import Risk
from ironcurtain.commandline.model import UNKNOWN, Word, Words
from ironcurtain.commandline.names import names

_TAR_VALUES = "bCfFgHIKLNTVX"
"""Letters of tar's options that take a value."""

_TAR_PACKS = re.compile(r"--(?:create|append|update|list|delete|di|compare|cat|conc|test-label)")
_TAR_UNPACKS = re.compile(r"--(?:ext|ge)")
"""Long options can be shortened, here and below."""

_UNZIP_SHOWS = re.compile(r"-[^-dPxiIO]*[lvtzZp][^-]*")
"""Options with which unzip shows something, before any that has a value. A further dash would take one back."""

_COMPRESSED_NAMES = re.compile(r"-[a-zA-Z]*[Nr]\w*|--na.*|--re.*")

_VERBS: dict[str, str] = {
    **dict.fromkeys(names("7z 7za 7zr 7zz unrar rar"), r"[xe]"),
    "ar": r"-?\w*[x]\w*",
    "jar": r"-?\w*x\w*|--ext.*",
    "lha": r"-?[xe]\w*",
}
"""What the first argument of a program is if it unpacks; some take large letters for small ones."""

_LISTED = re.compile(r"@.*|-[aix][^!]*@.*")
"""What makes them read further arguments, or names of files, from a file."""

_SHORT: dict[str, tuple[str, str]] = {
    "cpio": ("ip", "tv"),
    "bsdcpio": ("ip", "tv"),
    "pax": ("r", ""),
    "dpkg-deb": ("xXR", "cIfW"),
    "dpkg": ("xX", "lLsSpIcfWC"),
    "ditto": ("x", ""),
}
"""The letters of options with which a program unpacks, or only shows something; it has such words for them, too."""

_LONG = re.compile(r"--(?:ext\w*|vextract|raw-extract|pa\w*)")


def tar(words: Words) -> Effects:
    """What tar does: without a word that it packs or shows, it unpacks."""
    files = operands(words)
    remote = words[0].text.endswith("tar") and any(":" in word.text for word in words[1:])  # of another machine
    packs = unpacks = False
    for index, word in enumerate(words[1:]):
        text = word.text
        if text.startswith("--"):
            packs |= _TAR_PACKS.match(text) is not None
            unpacks |= _TAR_UNPACKS.match(text) is not None
        elif text.startswith("-") or index == 0:
            letters = re.sub(rf"(?<=[{_TAR_VALUES}]).*", "", text, count=1) if text.startswith("-") else text
            unpacks |= "x" in letters
            packs |= any(letter in letters for letter in "cturAd")
    fills = (HERE, *files) if unpacks or not packs else ()
    removes = any(word.text.startswith("--remove") for word in words[1:])
    risk = Risk.NETWORK if remote else Risk.DESTRUCTIVE if removes else Risk.READ
    addresses = (Word(UNKNOWN),) if remote else ()
    return Effects(risk, files, (*files, HERE), reads_trees=True, addresses=addresses, fills=fills, strays=bool(fills))


def unzip(words: Words) -> Effects:
    """What unzip does, which only shows files with some options."""
    options = [word.text for word in itertools.takewhile(lambda word: word.text.startswith("-"), words[1:])]
    if options and _UNZIP_SHOWS.fullmatch(options[0]) and not any("-" in text[1:] for text in options):
        return Effects(reads=operands(words))
    return _unpack(words)  # what stands behind the archive's name are names of files, also "-l"


def compress(words: Words) -> Effects:
    """What gzip and its like do with single files; with some options, with names in these, or with directories."""
    files = operands(words)
    named = any(_COMPRESSED_NAMES.fullmatch(word.text) for word in words[1:])
    return Effects(reads=files, writes=(*files, HERE), reads_trees=True, fills=(HERE, *files) if named else ())


def pack(words: Words) -> Effects:
    """What zip does."""
    files = operands(words)
    return Effects(reads=files, writes=(*files, HERE), reads_trees=True)


def by_verb(words: Words) -> Effects:
    """What programs do whose first argument says it."""
    name = words[0].text.rpartition("/")[2]
    verbs = (*words[1:2], *operands(words)[:1])  # switches may stand before it
    unpacks = any(not verb.known or re.fullmatch(_VERBS[name], verb.text, re.IGNORECASE) for verb in verbs)
    if unpacks or not verbs:
        return _unpack(words)
    listed = any(_LISTED.fullmatch(word.text) for word in words[1:])
    return replace(pack(words), risk=Risk.UNKNOWN if listed else Risk.READ)


def by_option(words: Words) -> Effects:
    """What programs do where an option says it. Others of their modes read names that the text does not show."""
    unpacks, shows = _SHORT[words[0].text.rpartition("/")[2]]
    if any(re.match(rf"-[a-zA-Z]*[{unpacks}]", word.text) or _LONG.match(word.text) for word in words[1:]):
        return _unpack(words)
    options = [word.text for word in words[1:] if word.text.startswith("-")]
    if options and shows and all(re.fullmatch(rf"-[{shows}]+", text) for text in options):
        return Effects(reads=operands(words))
    return Effects(Risk.UNKNOWN, operands(words), (*operands(words), HERE))


def _unpack(words: Words) -> Effects:
    files = operands(words)
    attached = tuple(word.after(2) for word in words[1:] if re.match(r"-[odC].", word.text))  # -oDIR
    targets = (HERE, *files, *attached)
    return Effects(reads=files, writes=targets, fills=targets, strays=True)


ARCHIVES: dict[str, Callable[[Words], Effects]] = {
    **dict.fromkeys(names("tar bsdtar gtar"), tar),
    **dict.fromkeys(names("unzip bsdunzip"), unzip),
    **dict.fromkeys(names("gzip gunzip bzip2 bunzip2 xz unxz zstd unzstd"), compress),
    "zip": pack,
    **dict.fromkeys(_VERBS, by_verb),
    **dict.fromkeys(_SHORT, by_option),
    **dict.fromkeys(names("unar unsquashfs cabextract patch"), _unpack),
}
"""The programs that this module knows; the files that ``patch`` changes stand in the patch."""
