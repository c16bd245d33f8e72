"""Flags and operands of a command in a form in which they can be compared."""

from __future__ import annotations

import re

import msgspec

from ironcurtain.commandline.model import Word, Words
from ironcurtain.commandline.names import names

_SINGLE_DASH = names("find gfind java javac terraform openssl ffmpeg convert magick xterm dd test [ expr gcc")
"""Programs whose options are words behind a single dash."""

_LETTERS = {
    "all": "a",
    "delete": "d",
    "force": "f",
    "insecure": "k",
    "interactive": "i",
    "output": "o",
    "quiet": "q",
    "recursive": "r",
    "verbose": "v",
    "yes": "y",
    "assume-yes": "y",
    "poweroff": "P",
    "reboot": "r",
    "halt": "H",
}
"""The letter that usual long options have; ``-R`` counts as ``-r`` where both mean the same."""

_FOLDED = names("rm chmod chown chgrp cp grep egrep fgrep ls diff")

GLOBAL_OPTIONS: dict[str, frozenset[str]] = {
    "git": names("-C -c --git-dir --work-tree --namespace --exec-path --super-prefix --config-env --attr-source"),
    "docker": names("-H --host -c --context -l --log-level --config --tlscacert --tlscert --tlskey"),
    "podman": names("-c --connection --url --root --runroot --log-level --identity"),
    "kubectl": names("-n --namespace --context --cluster --user --kubeconfig -s --server --token"),
    "systemctl": names("-H --host -M --machine -t --type -p --property -n --lines -o --output"),
    "cargo": frozenset(["--color", "--config", "-C", "-Z"]),
    "npm": frozenset(["--prefix", "-C", "-w", "--workspace"]),
    **dict.fromkeys(
        names("apt apt-get pip pip3 brew gh yarn pnpm dnf yum apk snap aws gcloud az helm zfs zpool"), frozenset[str]()
    ),
}
"""Programs whose first operand is a subcommand, and those of their options before it that have a value."""

_CLAUSE = re.compile(r"([ugoa]*)((?:[-+=](?:[rwxXst]*|[ugo]))+)")
_ACTION = re.compile(r"([-+=])([rwxXst]+|[ugo])?")
_BITS = {"r": 4, "w": 2, "x": 1, "X": 1}


class Parts(msgspec.Struct, frozen=True):
    """
    The arguments of a command, sorted.

    :param flags: short options with one dash each, and long ones, those with a usual letter also as that letter.
    :param operands: the other arguments.
    :param unknown: whether there are arguments that the text does not show.
    """

    flags: frozenset[str]
    operands: Words
    unknown: bool


def parts(name: str, words: Words) -> Parts:
    """
    :param name: of the program.
    :param words: its arguments.
    """
    flags: set[str] = set()
    operands: list[Word] = []
    rest = list(_without_global_options(name, words))
    while rest:
        word = rest.pop(0)
        text = word.text
        if text == "--":
            operands += rest
            break
        if text.startswith("-") and len(text) > 1:
            flags |= _flags(name, text)
        elif name == "git" and text.startswith("+"):  # a push of +branch is forced
            flags.add("-f")
            operands.append(word)
        else:
            operands.append(word)
    unknown = any(not word.known for word in words)
    return Parts(frozenset(flags), _modes(name, tuple(operands)), unknown)


def letter(name: str, flag: str) -> str:
    """:returns: a long option as its usual letter, others as they are."""
    short = f"-{_LETTERS[flag[2:]]}" if flag[:2] == "--" and flag[2:] in _LETTERS else flag
    return "-r" if short == "-R" and name in _FOLDED else short


def _flags(name: str, text: str) -> set[str]:
    if text.startswith("--"):
        flag = text.partition("=")[0]
        return {text, flag, letter(name, flag), *(letter(name, f"--{full}") for full in _abbreviated(flag[2:]))}
    if name in _SINGLE_DASH:
        return {text}
    return {letter(name, f"-{each}") for each in text[1:]}


def _abbreviated(start: str) -> list[str]:
    return [full for full in _LETTERS if full.startswith(start)]


def _without_global_options(name: str, words: Words) -> Words:
    valued = GLOBAL_OPTIONS.get(name, frozenset())
    kept: list[Word] = []
    index = 0
    while index < len(words) and words[index].text.startswith("-"):
        if words[index].text in valued:
            index += 1
        else:
            kept.append(words[index])
        index += 1
    return (*kept, *words[index:])


def _modes(name: str, operands: Words) -> Words:
    """:returns: the operands, with the mode of chmod as a number that no other operand can be."""
    if name != "chmod" or not operands:
        return operands
    mode = _mode(operands[0].pattern.replace("\\", ""))
    return operands if mode is None else (Word(f"mode:{mode}"), *operands[1:])


def _mode(text: str) -> str | None:
    """:returns: the mode of a file as at least three octal digits, if the text is one."""
    if re.fullmatch(r"[0-7]{3,}", text):
        return text.lstrip("0").rjust(3, "0")
    bits = dict.fromkeys("ugo", 0)
    for clause in text.split(","):
        if (parsed := _CLAUSE.fullmatch(clause)) is None:
            return None
        for operator, letters in _ACTION.findall(parsed[2]):
            value = bits[letters] if letters in bits else sum({_BITS.get(each, 0) for each in letters})
            for each in parsed[1].replace("a", "ugo") or "ugo":
                if operator == "-":
                    bits[each] &= ~value
                else:
                    bits[each] = value | (bits[each] if operator == "+" else 0)
    return "".join(str(bits[each]) for each in "ugo")
