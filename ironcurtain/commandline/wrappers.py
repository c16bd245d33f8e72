"""
Commands that run other commands: what ``sudo``, ``env``, ``xargs`` or ``find -exec`` would run.

Each function gets the words of a command and returns what it runs. A command that runs nothing else returns nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import msgspec

from ironcurtain.commandline.model import UNKNOWN, Word, Words, basename, quoted
from ironcurtain.commandline.names import names
from ironcurtain.commandline.options import Options, Parsed, parse_options

_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*\+?=")
_SUFFIXES_LIMIT = 8


class Inner(msgspec.Struct, frozen=True):
    """
    What a command runs.

    :param commands: the words of commands.
    :param texts: texts that a shell reads.
    :param doubts: sentences that say what is not known.
    :param shell: the shell that reads the texts.
    """

    commands: tuple[Words, ...] = ()
    texts: tuple[Word, ...] = ()
    doubts: tuple[str, ...] = ()
    shell: str = "bash"


NOTHING = Inner()

Unwrapper = Callable[[Words], Inner]


class Prefix(msgspec.Struct, frozen=True):
    """
    A command that runs the command behind its options.

    :param notation: its options, see :meth:`Options.of`.
    :param operands: how many words stand between its options and the command.
    :param assignments: whether assignments may stand there as well.
    :param without: options with which it runs nothing.
    """

    notation: str = ""
    operands: int = 0
    assignments: bool = False
    without: str = ""

    def __call__(self, words: Words) -> Inner:
        """:returns: what it runs."""
        parsed = parse_options(words[1:], Options.of(self.notation))
        rest, doubts = parsed.rest[self.operands :], tuple[str, ...]()
        if self.assignments:
            rest, doubts = _unassigned(words, rest)
        if any(letter in parsed.values for letter in self.without):
            rest = ()
        return Inner((rest,) if rest else (), doubts=(*strange(words, parsed), *doubts))


def _unassigned(words: Words, rest: Words) -> tuple[Words, tuple[str, ...]]:
    """:returns: the command behind assignments, and a doubt if there are any."""
    count = 0
    while count < len(rest) and _ASSIGNMENT.match(rest[count].text):
        count += 1
    doubts = (f"the variables that {basename(words[0])} sets can change what the command does",) if count else ()
    return rest[count:], doubts


def strange(words: Words, parsed: Parsed) -> tuple[str, ...]:
    """:returns: a doubt if a command has options that it is not known to have."""
    return tuple(f"{basename(words[0])} {option}: the option is not known" for option in parsed.strange)


def joined(words: Words) -> Word:
    """:returns: the text that a shell gets from a program that joins its arguments."""
    return Word(quoted(" ").join(quoted(word.filled(UNKNOWN)).replace(f"\\{UNKNOWN}", UNKNOWN) for word in words))


def env(words: Words) -> Inner:
    """What ``env`` runs; ``-S`` has a command and its arguments in one text."""
    notation = (
        "i0vu:C:S: ignore-environment null unset: chdir: split-string: debug block-signal:: default-signal:: "
        "ignore-signal:: list-signal-handling argv0:"
    )
    parsed = parse_options(words[1:], Options.of(notation))
    rest = parsed.rest[1:] if parsed.rest and parsed.rest[0].text == "-" else parsed.rest
    rest, doubts = _unassigned(words, rest)
    split = parsed.values.get("S") or parsed.values.get("split-string")
    doubts = (*strange(words, parsed), *doubts)
    if split is not None:
        return Inner(texts=(joined((split, *rest)),), doubts=doubts)
    return Inner((rest,) if rest else (), doubts=doubts)


def xargs(words: Words) -> Inner:
    """What ``xargs`` runs: a command with arguments that the text does not show."""
    notation = (
        "0prtxoa:d:E:e::I:i::L:l::n:P:s: null arg-file: delimiter: eof:: replace:: max-lines:: max-args: max-procs: "
        "max-chars: interactive no-run-if-empty verbose exit open-tty process-slot-var: show-limits"
    )
    parsed = parse_options(words[1:], Options.of(notation))
    mark = next((parsed.values[name] for name in ("I", "i", "replace") if name in parsed.values), Word(""))
    text = "{}" if mark is None else mark.text
    rest = tuple(Word(_filled(word.pattern, text)) for word in parsed.rest) if text else parsed.rest
    return Inner(((*rest, Word(UNKNOWN)) if rest else (),), doubts=strange(words, parsed)) if rest else NOTHING


def _filled(pattern: str, mark: str) -> str:
    return pattern.replace(quoted(mark), UNKNOWN).replace(mark, UNKNOWN)


def find(words: Words) -> Inner:
    """What ``find`` runs on the files that it finds."""
    commands: list[Words] = []
    current: list[Word] | None = None
    for word in words[1:]:
        if current is None:
            current = [] if word.text in ("-exec", "-execdir", "-ok", "-okdir") else None
        elif word.text in (";", "+"):
            commands.append(tuple(current))
            current = None
        else:
            current.append(Word(_filled(word.pattern, "{}")))
    return Inner((*commands, *([tuple(current)] if current else [])))


def some_suffix(words: Words) -> Inner:
    """What a command runs whose options are not known: one of the commands that its last words can be."""
    rest = words[1:]
    if rest and not rest[0].text.startswith("-"):
        return Inner((rest,))
    starts = [index for index, word in enumerate(rest) if not word.text.startswith("-")][:_SUFFIXES_LIMIT]
    return Inner(
        tuple(rest[index:] for index in starts), doubts=(f"the options of {basename(words[0])} are not known",)
    )


def any_suffix(words: Words) -> Inner:
    """As :func:`some_suffix`, for a command with operands before the command that it runs."""
    rest = words[1:]
    starts = [index for index, word in enumerate(rest) if not word.text.startswith("-")][:_SUFFIXES_LIMIT]
    return Inner(tuple(rest[index:] for index in starts), doubts=(f"what {basename(words[0])} runs is not known",))


WRAPPERS: dict[str, Unwrapper] = {
    "sudo": Prefix(
        "ABbEeHhiKklnNPSsVva:C:c:D:g:p:R:r:T:t:U:u: askpass background bell close-from: chdir: preserve-env:: edit "
        "group: set-home help host: login remove-timestamp reset-timestamp list non-interactive no-update "
        "preserve-groups prompt: chroot: role: stdin shell type: command-timeout: other-user: user: version validate",
        assignments=True,
    ),
    "doas": Prefix("Lnsa:C:u:"),
    "env": env,
    "command": Prefix("pvV", without="vV"),
    "builtin": Prefix(),
    "exec": Prefix("cla:"),
    "nohup": Prefix(),
    "nice": Prefix("0123456789n: adjustment:"),
    "ionice": Prefix("tc:n:p:P:u: class: classdata: ignore pid: pgid: uid:", without="pPu"),
    "setsid": Prefix("cfw ctty fork wait"),
    "stdbuf": Prefix("i:o:e: input: output: error:"),
    "timeout": Prefix("vk:s: foreground kill-after: preserve-status signal: verbose", operands=1),
    "time": Prefix("p", assignments=True),
    "chroot": Prefix(" groups: userspec: skip-chdir", operands=1),
    "unshare": Prefix(
        "cfimnprTuUCR:S:G:w:m::u::i::n::p::U::C::T:: fork mount:: uts:: ipc:: net:: pid:: user:: cgroup:: time:: "
        "map-root-user map-current-user map-auto map-user: map-group: map-users: map-groups: mount-proc:: root: wd: "
        "setuid: setgid: keep-caps kill-child:: propagation: setgroups: boottime: monotonic:"
    ),
    "nsenter": Prefix(
        "aFeZt:S:G:m::u::i::n::p::U::C::T::r::w::W: all target: mount:: uts:: ipc:: net:: pid:: user:: cgroup:: "
        "time:: root:: wd:: wdns: setuid: setgid: preserve-credentials no-fork env"
    ),
    "xargs": xargs,
    "find": find,
    "gfind": find,
    "busybox": Prefix(),
    "toybox": Prefix(),
    "noglob": Prefix(),
    "nocorrect": Prefix(),
    "-": Prefix(),
    "and": Prefix(assignments=True),
    "or": Prefix(assignments=True),
    "not": Prefix(assignments=True),
    "!": Prefix(assignments=True),
    "begin": Prefix(assignments=True),
    "repeat": Prefix(operands=1),
    **dict.fromkeys(
        names(
            "pkexec systemd-run strace ltrace valgrind fakeroot firejail torsocks torify proxychains proxychains4 "
            "rlwrap unbuffer caffeinate xvfb-run dbus-run-session dbus-launch setpriv choom prlimit numactl chronic "
            "systemd-inhibit ld.so rtkit cpulimit eatmydata fakechroot proot bwrap coproc gdb"
        ),
        some_suffix,
    ),
    **dict.fromkeys(
        names(
            "taskset chrt setarch linux32 linux64 cgexec ld-linux-x86-64.so.2 ld-linux-aarch64.so.1 ld-linux.so.2 "
            "start-stop-daemon capsh runcon sg parallel entr faketime perf"
        ),
        any_suffix,
    ),
}
"""The commands that run others given as words."""
