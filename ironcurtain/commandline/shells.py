"""
Commands that read a text as commands: ``sh -c``, ``eval``, ``trap``, ``ssh`` and the like.

Each function gets the words of a command and returns what it runs, as those in :mod:`ironcurtain.commandline.wrappers`.
"""

from __future__ import annotations

from ironcurtain.commandline.model import Word, Words, basename
from ironcurtain.commandline.names import SHELLS
from ironcurtain.commandline.options import Options, parse_options
from ironcurtain.commandline.wrappers import NOTHING, Inner, Unwrapper, joined, strange

_FISH = Options.of(
    "c:C:d:D:f:hiln:NPo:p::v command: init-command: debug: features: interactive login no-config private"
)
_LONG_WITH_FILE = ("rcfile", "init-file")
_SU = Options.of(
    "c:fg:G:lmpPs:u:w:C: command: session-command: fast group: supp-group: login preserve-environment pty shell: user: "
    "whitelist-environment:"
)


def shell(words: Words) -> Inner:
    """What a shell runs: with ``-c``, the first word that is no option."""
    name = basename(words[0])
    if name == "fish":
        return _fish(words)
    has_command, doubts, rest = False, list[str](), list(words[1:])
    while rest and rest[0].text[:1] in ("-", "+") and len(rest[0].text) > 1:
        option = rest.pop(0).text
        if option == "--":
            break
        if option.startswith("--"):
            if option.strip("-").partition("=")[0] in _LONG_WITH_FILE:
                doubts.append(f"{name} {option} runs a file")
            continue
        has_command = has_command or ("c" in option and option.startswith("-"))
        if option[-1] in "oO" and rest:
            rest.pop(0)
    if not has_command:
        return Inner(doubts=tuple(doubts))
    if not rest:
        return Inner(doubts=(*doubts, f"{name} -c has no command"))
    return Inner(texts=(rest[0],), doubts=tuple(doubts), shell="zsh" if name == "zsh" else "bash")


def _fish(words: Words) -> Inner:
    parsed = parse_options(words[1:], _FISH)
    texts = tuple(
        text for name in ("c", "command", "C", "init-command") if (text := parsed.values.get(name)) is not None
    )
    return Inner(texts=texts, doubts=strange(words, parsed), shell="fish")


def reads_stdin(words: Words) -> bool:
    """:returns: whether a shell or an interpreter without operands reads a program from where it reads its input."""
    operands = [word for word in words[1:] if not word.text.startswith(("-", "+")) or not word.known]
    flags = {word.text for word in words[1:]} - {word.text for word in operands}
    return not operands or "-s" in flags or "-" in flags or "/dev/stdin" in {word.text for word in operands}


def su(words: Words) -> Inner:
    """What ``su`` and ``runuser`` run: the text after ``-c``, or for ``runuser -u`` the words after its options."""
    found: list[Word] = []
    rest = words[1:]
    while rest:
        parsed = parse_options(rest, _SU)
        found += [text for name in ("c", "command", "session-command") if (text := parsed.values.get(name)) is not None]
        if parsed.strange:
            return Inner(texts=tuple(found), doubts=strange(words, parsed))
        if ("u" in parsed.values or "user" in parsed.values) and parsed.rest:
            return Inner((parsed.rest,), tuple(found))
        rest = parsed.rest[1:]
    return Inner(texts=tuple(found))


def evaluated(words: Words) -> Inner:
    """What ``eval`` runs: its arguments, joined."""
    rest = words[2:] if len(words) > 1 and words[1].text == "--" else words[1:]
    return Inner(texts=(joined(rest),)) if rest else NOTHING


def trap(words: Words) -> Inner:
    """What ``trap`` runs later."""
    rest = words[2:] if len(words) > 1 and words[1].text == "--" else words[1:]
    if not rest or rest[0].text.startswith("-"):
        return NOTHING
    return Inner(texts=(rest[0],))


def ssh(words: Words) -> Inner:
    """What ``ssh`` runs on the other machine: its last arguments, joined."""
    options = Options.of("46AaCfGgKkMNnqsTtVvXxYyB:b:c:D:E:e:F:I:i:J:L:l:m:O:o:P:p:Q:R:S:W:w:")
    before = parse_options(words[1:], options)
    after = parse_options(before.rest[1:], options)
    doubts = list(strange(words, before) + strange(words, after))
    texts = [word.text.lower() for word in words if not word.known or "command" in word.text.lower()]
    if any("command" in text.partition("=")[0] for text in texts):
        doubts.append("an option of ssh runs a command")
    return Inner(texts=(joined(after.rest),) if after.rest else (), doubts=tuple(doubts))


def script(words: Words) -> Inner:
    """What ``script`` records."""
    notation = (
        "aec:E:fqB:I:O:T:m:o:t:: append command: echo: return flush force quiet timing:: log-in: log-out: log-io: "
        "log-timing: logging-format: output-limit:"
    )
    parsed = parse_options(words[1:], Options.of(notation))
    text = parsed.values.get("c") or parsed.values.get("command")
    marks = [index for index, word in enumerate(parsed.rest) if word.text == "--"]
    commands = (parsed.rest[marks[0] + 1 :],) if marks else ()
    return Inner(commands, (text,) if text is not None else (), strange(words, parsed))


def flock(words: Words) -> Inner:
    """What ``flock`` runs while it has the lock."""
    notation = (
        "Fenosuxw:E:c: shared exclusive unlock nonblock nb timeout: wait: close no-fork conflict-exit-code: verbose"
    )
    parsed = parse_options(words[1:], Options.of(notation))
    rest = parsed.rest[1:]
    if (text := parsed.values.get("c")) is not None:
        return Inner(texts=(text,))
    if len(rest) > 1 and rest[0].text in ("-c", "--command"):
        return Inner(texts=(rest[1],))
    return Inner((rest,) if rest else (), doubts=strange(words, parsed))


def watch(words: Words) -> Inner:
    """What ``watch`` repeats."""
    notation = (
        "bcCdegprtwxn:q: beep color no-color differences:: errexit chgexit interval: precise equexit: no-rerun "
        "no-title no-wrap exec"
    )
    parsed = parse_options(words[1:], Options.of(notation))
    return Inner(texts=(joined(parsed.rest),) if parsed.rest else (), doubts=strange(words, parsed))


SHELL_COMMANDS: dict[str, Unwrapper] = {
    **dict.fromkeys(SHELLS, shell),
    "su": su,
    "runuser": su,
    "eval": evaluated,
    "trap": trap,
    "ssh": ssh,
    "slogin": ssh,
    "script": script,
    "flock": flock,
    "watch": watch,
}
"""The commands that read a text as commands."""
