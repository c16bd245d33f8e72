"""What each command of a line does, by the table of programs and by what is known of some of them."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import pairwise

from msgspec.structs import replace

from ironcurtain.command_rules.archives import ARCHIVES
from ironcurtain.command_rules.effect import HERE, UNKNOWN_EFFECTS, Effects, operands, within
from ironcurtain.command_rules.flags import parts
from ironcurtain.command_rules.git import git
from ironcurtain.command_rules.globs import ONE, STAR, tokens
from ironcurtain.command_rules.risk import Risk
from ironcurtain.command_rules.transfers import TRANSFERS
from ironcurtain.commandline.model import UNKNOWN, SimpleCommand, Word, Words
from ironcurtain.commandline.names import SHELLS, names
from ironcurtain.commandline.programs import PROGRAMS, SAFE_ARGUMENTS, SUBCOMMANDS, UNSAFE_OPTIONS, Use, program
from ironcurtain.commandline.shells import SHELL_COMMANDS
from ironcurtain.commandline.wrappers import WRAPPERS


def effects(command: SimpleCommand) -> tuple[Effects, ...]:
    """
    :param command: from a reading.
    :returns: what the command does, and what the commands around it do besides running it.
    """
    around = tuple(found for words in command.wrappers if (found := _around(words)) is not None)
    return (*around, _effects(command.words))


def is_known(command: SimpleCommand, names_subcommand: bool) -> bool:
    """
    :param names_subcommand: whether who allowed the command also wrote which subcommand of its program.
    :returns: whether it is known what the program does with which options, so that those that only read can be told.
    """
    name = program(command.words[0])
    if name in SUBCOMMANDS:
        return not names_subcommand or _subcommand(name, command.words) is not Use.UNKNOWN
    return name in PROGRAMS or name in _SPECIAL or name in WRAPPERS or name in SHELL_COMMANDS


_ONLY_RUNS = SHELLS | names("time nice ionice timeout stdbuf command setsid env xargs busybox toybox watch eval trap")
"""Commands that do nothing besides running another one."""


def _around(words: Words) -> Effects | None:
    name = program(words[0])
    if name == "nohup":
        return Effects(writes=(Word("nohup.out"), Word("~/nohup.out")))
    reads_arguments = name == "xargs" and any(re.match(r"-\w*a|--a", word.text) for word in words[1:])
    if name in _ONLY_RUNS and not reads_arguments:
        return None
    use = PROGRAMS.get(name or "")
    return _effects(words) if use in (Use.PRIVILEGE, Use.NETWORK) or name in ("find", "gfind") else UNKNOWN_EFFECTS


def _effects(words: Words) -> Effects:
    name = program(words[0])
    if name is None or _is_unsafe(name, words):
        return UNKNOWN_EFFECTS
    if (special := _SPECIAL.get(name)) is not None:
        found = special(words)
    elif name in SUBCOMMANDS:
        found = _by_use(_subcommand(name, words), name, words)
    else:
        found = _by_use(PROGRAMS.get(name, Use.UNKNOWN), name, words)
    return replace(found, risk=Risk.UNKNOWN) if _may_have_options(name, words) else found


def _may_have_options(name: str, words: Words) -> bool:
    """:returns: whether variables, or names of files that a wildcard finds, can be options that do something else."""
    if not any(name in table for table in (UNSAFE_OPTIONS, SAFE_ARGUMENTS, SUBCOMMANDS, _SPECIAL)):
        return False
    for word in words[1:]:
        if not word.known or tokens(word.pattern)[:1] in ((STAR,), (ONE,)):
            return True
        if word.text == "--" and name not in ("find", "gfind"):
            return False
    return False


def _is_unsafe(name: str, words: Words) -> bool:
    if (safe := SAFE_ARGUMENTS.get(name)) is not None:
        return not all(re.fullmatch(safe, word.text, re.DOTALL | re.ASCII) for word in words[1:])
    unsafe = UNSAFE_OPTIONS.get(name, ())
    for index, word in enumerate(words[1:]):
        text = word.text
        if name in ("tar", "gtar", "bsdtar") and index == 0 and not text.startswith("-"):
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
    letters = re.match(r"-[\w@]*", text)
    return letters is not None and letter in letters[0]


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
        Use.READ: lambda: _read(files, name, _is_recursive(name, words)),
        Use.READ_TREES: lambda: _read(files, name, True),
        Use.WRITE: lambda: Effects(writes=files or (HERE,), wholes=files if _is_recursive(name, words) else ()),
        Use.COPY: lambda: _copy(files, name, words),
        Use.MOVE: lambda: _move(files, words),
        Use.DELETE: lambda: Effects(Risk.DESTRUCTIVE, writes=files, wholes=files),
        Use.NETWORK: lambda: Effects(Risk.NETWORK, addresses=files),
        Use.PRIVILEGE: lambda: Effects(Risk.PRIVILEGE),
        Use.INSTALL: lambda: Effects(Risk.PRIVILEGE, addresses=(Word(UNKNOWN),)),
        Use.DESTRUCTIVE: lambda: Effects(Risk.DESTRUCTIVE, writes=tuple(f for f in files if "/" in f.text)),
        Use.UNKNOWN: lambda: UNKNOWN_EFFECTS,
    }
    return builders[use]()


_RECURSIVE = {
    **dict.fromkeys(names("grep egrep fgrep zgrep"), "rR"),
    **dict.fromkeys(names("ls dir vdir ll la chmod chown chgrp lsattr getfacl setfacl chattr"), "R"),
    **dict.fromkeys(names("exa eza lsd"), "RT"),
    "diff": "r",
}
"""The letters with which programs go down into directories; of others, ``r``, ``R`` and ``a``."""


def _is_recursive(name: str, words: Words) -> bool:
    letters = re.compile(
        rf"-\w*[{_RECURSIVE.get(name, 'rRa')}]\w*|--(?:r|dereference-r|di|tree|ar).*|-d?recurse|recurse"
    )
    return any(letters.fullmatch(word.text) is not None for word in words[1:])


_SEARCHES = names("grep egrep fgrep zgrep rg ag fd fdfind")
"""Programs whose first operand is what they search for."""


def _read(files: Words, name: str, trees: bool) -> Effects:
    """What a program does that only reads; one that goes down into directories begins here, if nothing else is said."""
    said = len(files) > 1 if trees and name in _SEARCHES else files
    return Effects(reads=files if said else (*files, HERE), reads_trees=trees)


_TARGET = re.compile(r"-[a-zA-Z]*t|--t[a-z-]*")
"""The option of cp, mv, ln and install after which the directory stands."""


def _targets(files: Words, words: Words) -> tuple[Words, Words]:
    """:returns: what is copied, and where to; with ``-t`` the directory can be any argument."""
    if any(_TARGET.match(word.text) for word in words[1:]):
        attached = tuple(word.after(2) for word in words[1:] if re.match(r"-t.", word.text))
        after = tuple(word for option, word in pairwise(words) if _TARGET.fullmatch(option.text))
        return files, (*attached, *after) or files
    return files[:-1] if len(files) > 1 else files, files[-1:] if len(files) > 1 else (HERE,)


_MOST_NAMED = 32
"""Most sources whose names in their target are looked at; of more, all that is in the target counts."""


def _lands(sources: Words, targets: Words) -> Words:
    """:returns: where files get to in directories."""
    if len(sources) > _MOST_NAMED:
        return targets
    return tuple(dict.fromkeys(within(target, source) for target in targets for source in sources))


def _copy(files: Words, name: str, words: Words) -> Effects:
    """What cp, ln and install do."""
    sources, targets = _targets(files, words)
    parents = name == "cp" and any(word.text.startswith("--pa") for word in words[1:])  # it makes the directories above
    lands, recursive = _lands(sources, targets), parents or _is_recursive(name, words)
    fills: Words = ()
    if recursive:
        renamed = any(re.match(r"-[a-zA-Z]*T|--no-t", word.text) for word in words[1:])
        there = not (renamed or parents) and all(re.fullmatch(r"(?:\.\.?|~)?/?", target.text) for target in targets)
        fills = lands if there else (*targets, *lands)  # one that is not there becomes the copy
    writes = (*files, *targets) if sources == files else targets
    return Effects(reads=sources, writes=writes, reads_trees=recursive, fills=fills, lands=lands)


def _move(files: Words, words: Words) -> Effects:
    if len(files) < 2:
        return Effects(writes=files, wholes=files)
    sources, targets = _targets(files, words)
    return Effects(writes=files, wholes=sources, lands=_lands(sources, targets))


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
    if not rest or rest[0].plain is None or not _only_prints(rest[0].text):
        return UNKNOWN_EFFECTS
    return Effects(reads=tuple(rest[1:]))


_AWK_REGEX = re.compile(r"/(?:[^/\\\n]|\\.)+/")
_AWK_TOKEN = re.compile(
    r"""\s+|"(?:[^"\\\n]|\\.)*"|[0-9.]+|(?P<name>[A-Za-z_]\w*)"""
    r"""|[<=!+*%-]=|==|\+\+|--|&&|\|\||[{}()\[\];,$?:~!<=+*%^-]""",
    re.ASCII,
)
_AWK_NAMES = names(
    "BEGIN END NR NF FS OFS RS ORS FNR FILENAME RSTART RLENGTH SUBSEP if else for in while do next exit print printf "
    "length substr index split sub gsub match tolower toupper int sprintf sqrt log exp sum min max cnt count total "
    "seen key val value line lines name first last prev"
)


def _only_prints(program: str) -> bool:
    """
    :returns: whether all of a program of awk is of what calculates and prints. Its variables have one or two letters. A
        slash begins an expression where no value can stand before it; it is never taken for a division.
    """
    at, before = 0, ""
    while at < len(program):
        expression = before in ("", "{", "}", "(", ",", ";", "!", "~", "&&", "||")
        found = (_AWK_REGEX if expression and program[at] == "/" else _AWK_TOKEN).match(program, at)
        if found is None:
            return False
        name = found.groupdict().get("name")
        if name and len(name) > 2 and name not in _AWK_NAMES:
            return False
        at, before = found.end(), found[0].strip() or before
    return True


_FIND = re.compile(
    r"-(?:[0-9].*|[HLP]|a|amin|and|anewer|atime|cmin|cnewer|ctime|daystart|delete|depth|empty|exec|execdir|executable|"
    r"false|fls|follow|fprint0?|fprintf|fstype|gid|group|i?lname|i?name|i?path|i?regex|i?wholename|inum|links|ls|"
    r"maxdepth|mindepth|mmin|mount|mtime|newer\w*|nogroup|not|nouser|o|ok|okdir|or|perm|print0?|printf|prune|quit|"
    r"readable|regextype|samefile|size|true|type|uid|used|user|writable|xdev|xtype)|-"
)
"""The options and tests of find that are known."""


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
    if any(word.text.startswith("-") and _FIND.fullmatch(word.text) is None for word in words[1:]):
        return UNKNOWN_EFFECTS
    pairs = pairwise(words)
    files = tuple(file for option, file in pairs if re.fullmatch(r"-f(?:print0?|printf|ls)", option.text))
    if any(word.text == "-delete" for word in words):
        return Effects(Risk.DESTRUCTIVE, roots, (*roots, *files), roots)
    return Effects(reads=roots, writes=files, reads_trees=True)


def _dd(words: Words) -> Effects:
    def values(key: str) -> Words:
        return tuple(
            Word.literal(word.text[3:]) if word.known else word for word in words[1:] if word.text.startswith(f"{key}=")
        )

    return Effects(Risk.DESTRUCTIVE, reads=values("if"), writes=values("of"))


def _second_is_written(words: Words) -> Effects:
    files = operands(words)
    return Effects(reads=files[:1], writes=files[1:])


_SPECIAL: dict[str, Callable[[Words], Effects]] = {
    "awk": _awk,
    "gawk": _awk,
    "mawk": _awk,
    "dd": _dd,
    "find": _find,
    "gfind": _find,
    "git": git,
    "sed": _sed,
    "gsed": _sed,
    "uniq": _second_is_written,
    "xxd": _second_is_written,
    **ARCHIVES,
    **TRANSFERS,
}
