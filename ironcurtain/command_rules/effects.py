"""What each command of a line does, by the table of programs and by what is known of some of them."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import pairwise

from ironcurtain.command_rules.effect import HERE, UNKNOWN_EFFECTS, Effects, operands
from ironcurtain.command_rules.flags import parts
from ironcurtain.command_rules.git import git
from ironcurtain.command_rules.risk import Risk
from ironcurtain.command_rules.transfers import TRANSFERS
from ironcurtain.commandline.model import UNKNOWN, SimpleCommand, Word, Words
from ironcurtain.commandline.names import names
from ironcurtain.commandline.programs import PROGRAMS, SUBCOMMANDS, UNSAFE_OPTIONS, Use, program


def effects(command: SimpleCommand, functions: frozenset[str] = frozenset()) -> tuple[Effects, ...]:
    """
    :param command: from a reading.
    :param functions: those that the same line defines; their bodies are commands of their own.
    :returns: what the command does, and what the commands around it do besides running it.
    """
    around = tuple(found for words in command.wrappers if (found := _around(words)) is not None)
    name = command.words[0].text
    return (*around, Effects() if name in functions else _effects(command.words))


def _around(words: Words) -> Effects | None:
    name = program(words[0])
    if name is None:
        return UNKNOWN_EFFECTS
    use = PROGRAMS.get(name)
    if use in (Use.PRIVILEGE, Use.NETWORK) or name in ("find", "gfind"):
        return _effects(words)
    return None


def _effects(words: Words) -> Effects:
    name = program(words[0])
    if name is None or _is_unsafe(name, words):
        return UNKNOWN_EFFECTS
    if (special := _SPECIAL.get(name)) is not None:
        return special(words)
    if name in SUBCOMMANDS:
        return _by_use(_subcommand(name, words), name, words)
    return _by_use(PROGRAMS.get(name, Use.UNKNOWN), name, words)


def _is_unsafe(name: str, words: Words) -> bool:
    unsafe = UNSAFE_OPTIONS.get(name, ())
    for index, word in enumerate(words[1:]):
        text = word.text
        if name in ("tar", "bsdtar") and index == 0 and not text.startswith("-"):
            text = f"-{text}"  # the old form: tar xf a.tar
        for option in unsafe:
            if (
                text.startswith(option)
                or _abbreviates(text, option)
                or (option[1:2] not in ("", "-") and len(option) == 2 and _in_cluster(option[1], text))
            ):
                return True
    return False


def _abbreviates(text: str, option: str) -> bool:
    flag = text.partition("=")[0]
    return len(flag) > 2 and flag.startswith("--") and option.startswith(flag) and flag not in _COMPLETE


_COMPLETE = frozenset(("--file",))
"""Options that begin as an unsafe one does, and are none."""


def _in_cluster(letter: str, text: str) -> bool:
    return re.fullmatch(r"-\w+", text) is not None and letter in text


def _subcommand(name: str, words: Words) -> Use:
    table, other = SUBCOMMANDS[name]
    given = parts(name, words[1:]).operands
    if not given:
        return Use.TEXT if len(words) == 1 or words[1].text in ("--help", "--version", "-h") else other
    if name in ("docker", "podman") and "prune" in {word.text for word in given}:
        return Use.DESTRUCTIVE
    return next((use for use, names in table.items() if given[0].plain in names.split()), other)


def _by_use(use: Use, name: str, words: Words) -> Effects:
    files = operands(words)
    builders: dict[Use, Callable[[], Effects]] = {
        Use.TEXT: Effects,
        Use.READ: lambda: Effects(reads=files or (HERE,), reads_trees=_is_recursive(words)),
        Use.READ_TREES: lambda: Effects(reads=files or (HERE,), reads_trees=True),
        Use.WRITE: lambda: Effects(writes=files or (HERE,), wholes=files if _is_recursive(words) else ()),
        Use.COPY: lambda: _copy(files, words),
        Use.MOVE: lambda: Effects(writes=files, wholes=files[:-1] if len(files) > 1 else files),
        Use.DELETE: lambda: Effects(Risk.DESTRUCTIVE, writes=files, wholes=files),
        Use.NETWORK: lambda: Effects(Risk.NETWORK, addresses=files),
        Use.PRIVILEGE: lambda: Effects(Risk.PRIVILEGE),
        Use.INSTALL: lambda: Effects(Risk.PRIVILEGE, addresses=(Word(UNKNOWN),)),
        Use.DESTRUCTIVE: lambda: Effects(Risk.DESTRUCTIVE, writes=tuple(f for f in files if "/" in f.text)),
        Use.UNKNOWN: lambda: UNKNOWN_EFFECTS,
    }
    return builders[use]()


def _is_recursive(words: Words) -> bool:
    return any(
        word.text.startswith("--recursive") or re.fullmatch(r"-\w*[rRa]\w*", word.text) is not None
        for word in words[1:]
    )


def _copy(files: Words, words: Words) -> Effects:
    """What cp, ln and install do; with ``-t`` the directory can be any argument."""
    has_target = any(re.match(r"-\w*t|--t", word.text) for word in words[1:])
    if has_target:
        attached = tuple(word.after(2) for word in words[1:] if re.match(r"-t.", word.text))
        return Effects(reads=files, writes=(*files, *attached), reads_trees=_is_recursive(words))
    return Effects(reads=files[:-1], writes=files[-1:] if len(files) > 1 else (HERE,), reads_trees=_is_recursive(words))


_SED_ADDRESS = r"(?:\d+|\$|/(?:[^/\\]|\\.)*/)"
_SED_PART = r"(?:(?!(?P=d))[^\\\n]|\\.)*(?P=d)"
_SED_COMMAND = rf"(?:{_SED_ADDRESS}(?:,{_SED_ADDRESS})?)?!?(?:[pdq=]|s(?P<d>[/|#,:@]){_SED_PART}{_SED_PART}[gpiI0-9]*)"


def _sed(words: Words) -> Effects:
    """What sed does. A script that does more than print, delete and substitute lines can run programs."""
    scripts, files, in_place, rest = list[Word](), list[Word](), False, list(words[1:])
    while rest:
        word = rest.pop(0)
        text = word.text
        if text in ("-e", "--expression") and rest:
            scripts.append(rest.pop(0))
        elif re.fullmatch(r"-[nErsuz]*i.*|--in-place.*", text):
            in_place = True
        elif re.fullmatch(r"-[nErsuz]+|--quiet|--silent|--regexp-extended|--posix|--null-data|--separate", text):
            continue
        elif text.startswith("-") and text != "-":
            return UNKNOWN_EFFECTS
        else:
            files.append(word)
    if not scripts:
        scripts, files = files[:1], files[1:]
    if not all(word.known and _is_plain_sed(word.text) for word in scripts):
        return UNKNOWN_EFFECTS
    return Effects(reads=tuple(files), writes=tuple(files) if in_place else ())


def _is_plain_sed(script: str) -> bool:
    return all(re.fullmatch(_SED_COMMAND, part.strip()) for part in re.split(r"[;\n]", script) if part.strip())


def _awk(words: Words) -> Effects:
    """What awk does, if its program only prints."""
    rest = list(words[1:])
    while rest and rest[0].text.startswith("-"):
        option = rest.pop(0).text
        if option in ("-F", "-v") and rest:
            rest.pop(0)
        elif not option.startswith(("-F", "-v")):
            return UNKNOWN_EFFECTS
    if not rest or not rest[0].known or re.search(r"system|getline|[|>@]|close|fflush", rest[0].text):
        return UNKNOWN_EFFECTS
    return Effects(reads=tuple(rest[1:]))


def _find(words: Words) -> Effects:
    """What find does besides the commands that it runs."""
    starts: list[Word] = []
    for word in words[1:]:
        if (word.text.startswith(("-", "(", "!", ",")) and starts) or (
            word.text.startswith("-") and len(word.text) > 2
        ):
            break
        if not word.text.startswith("-"):
            starts.append(word)
    roots = tuple(starts) or (HERE,)
    pairs = pairwise(words)
    files = tuple(file for option, file in pairs if re.fullmatch(r"-f(?:print0?|printf|ls)", option.text))
    if any(word.text == "-delete" for word in words):
        return Effects(Risk.DESTRUCTIVE, roots, (*roots, *files), roots)
    if any(word.text == "-files0-from" for word in words):
        return UNKNOWN_EFFECTS
    return Effects(reads=roots, writes=files)


def _dd(words: Words) -> Effects:
    def values(key: str) -> Words:
        return tuple(
            Word.literal(word.text[3:]) if word.known else word for word in words[1:] if word.text.startswith(f"{key}=")
        )

    return Effects(Risk.DESTRUCTIVE, reads=values("if"), writes=values("of"))


def _tar(words: Words) -> Effects:
    files = operands(words)
    if words[0].text.endswith("tar") and any(":" in word.text for word in words[1:]):  # an archive of another machine
        return Effects(Risk.NETWORK, files, (*files, HERE), reads_trees=True, addresses=(Word(UNKNOWN),))
    return Effects(reads=files, writes=(*files, HERE), reads_trees=True)


def _second_is_written(words: Words) -> Effects:
    files = operands(words)
    return Effects(reads=files[:1], writes=files[1:])


def _date(words: Words) -> Effects:
    return Effects() if all(word.text.startswith(("+", "-")) for word in words[1:2]) else UNKNOWN_EFFECTS


_SPECIAL: dict[str, Callable[[Words], Effects]] = {
    "awk": _awk,
    "gawk": _awk,
    "mawk": _awk,
    "date": _date,
    "dd": _dd,
    "find": _find,
    "gfind": _find,
    "git": git,
    "sed": _sed,
    "gsed": _sed,
    "uniq": _second_is_written,
    "xxd": _second_is_written,
    **dict.fromkeys(names("tar bsdtar zip unzip gzip gunzip bzip2 bunzip2 xz unxz zstd"), _tar),
    **TRANSFERS,
}
