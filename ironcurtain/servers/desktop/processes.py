"""
Which application a process is, and which processes get no input: those with IronCurtain in them, and terminals unasked.

An application is called by its program, not by what its windows say: a title is free, the kernel knows the program.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator, Mapping

import msgspec

_INTERPRETERS = re.compile(
    r"(?:python|pypy|perl|ruby|lua|wish|guile)[0-9.]*|(?:ba|da|z|fi|k)?sh|node|nodejs|deno|bun|java|mono|gjs|gjs-console"
    r"|electron[0-9]*|env|wine(?:64)?(?:-preloader)?"
)
"""Programs that are called by what they run."""

_TERMINALS = re.compile(
    r"alacritty|blackbox|contour|cool-retro-term|deepin-terminal|eterm|foot(?:client)?|ghostty|gnome-console|kgx|guake"
    r"|(?:gnome|mate|xfce4)-terminal(?:-server|\.wrapper)?|hyper|kitty|konsole|lxterminal|mlterm|ptyxis(?:-agent)?"
    r"|[qu]?terminal|rio|u?rxvtd?|sakura|st|stterm|tabby|terminator|terminology|terminix|tilda|tilix|u?xterm|warp(?:-.*)?"
    r"|wezterm(?:-gui)?|yakuake"
)
"""Known terminal emulators; others are known by what they do."""

_COMMANDERS = re.compile(
    r"emacs.*|g?vim.*|nvim-qt|neovide|idle.*|jupyter-qtconsole|spyder"
    r"|albert|bemenu.*|dmenu.*|fuzzel|gmrun|krunner|launchy|lxqt-runner|rofi|synapse|tofi.*|ulauncher|wofi"
    r"|xfce4-appfinder|xfrun4|cinnamon|gnome-shell|plasmashell"
    r"|(?:auto)?sshd?|xpra.*|x2goclient|waypipe|xephyr|xnest|xwayland|.*vnc.*|.*vinagre|krdc|remmina"
    r"|rdesktop|.*freerdp.*|gnome-(?:boxes|connections)|(?:remote|virt)-(?:manager|viewer)|spicy|qemu.*|virtualbox.*|vmware.*"
)
"""Other programs in which commands are typed: editors, launchers, and those that show another machine or display."""

_MULTIPLEXERS = re.compile(r"tmux|screen|zellij|dtach|abduco|dvtm|byobu|mosh|et")
"""Programs whose sessions appear in terminals that are not above them."""

_WORDS = 8
"""Number of words of a command line in which IronCurtain would be named."""

_NAME = "ironcurtain"


class Process(msgspec.Struct, frozen=True):
    """
    :param name: short name, which the process itself can change.
    :param program: path of its program; empty if it hides that.
    :param words: its command line.
    :param terminal: number of its controlling terminal's device; 0 if it has none.
    """

    pid: int
    parent: int
    name: str
    program: str
    words: tuple[str, ...]
    terminal: int


Processes = Mapping[int, Process]
"""Processes by id."""


def read_processes(proc: str = "/proc") -> dict[int, Process]:
    """:returns: all processes that can be seen."""
    found = {}
    for entry in os.listdir(proc) if os.path.isdir(proc) else ():
        if entry.isdecimal() and (process := _process(int(entry), f"{proc}/{entry}")) is not None:
            found[process.pid] = process
    return found


def _process(pid: int, place: str) -> Process | None:
    try:
        before, _, after = _text(f"{place}/stat").rpartition(")")
        fields = after.split()
        words = _text(f"{place}/cmdline").split("\0")[:-1]
    except OSError:
        return None  # it has ended
    try:
        program = os.readlink(f"{place}/exe").removesuffix(" (deleted)")
    except OSError:
        program = ""
    return Process(pid, int(fields[1]), before.partition("(")[2], program, tuple(words), int(fields[4]))


def _text(path: str) -> str:
    """:returns: the text of a file; this is done so often that it is done without buffers and the like."""
    with open(path, "rb", buffering=0) as file:
        return file.readall().decode(errors="replace")


def app_name(process: Process) -> str:
    """:returns: the name of an application: of its program, or of the script or module that an interpreter runs."""
    program = os.path.basename(process.program) or process.name
    if not _INTERPRETERS.fullmatch(program):
        return program
    words = iter(process.words[1:])
    for word in words:
        if word in ("-m", "-jar"):
            return os.path.basename(next(words, "")) or program
        if word in ("-c", "-e"):
            return program
        if not word.startswith("-"):
            return re.sub(r"\.(?:py|pl|rb|js|sh|jar|asar)\Z", "", os.path.basename(word.rstrip("/"))) or program
    return program


def may_run_commands(process: Process, processes: Processes, holds_terminal: bool) -> bool:
    """
    :param holds_terminal: whether it has the controlling side of a terminal, or hides that.
    :returns: whether an application runs commands that are typed in it.
    """
    if holds_terminal or not process.program or _is_terminal(process):
        return True
    if _COMMANDERS.fullmatch(app_name(process).casefold()):
        return True
    return any(each.terminal not in (0, process.terminal) for each in _below(process.pid, processes))


def _is_terminal(process: Process) -> bool:
    return _TERMINALS.fullmatch(app_name(process).casefold()) is not None


def _below(pid: int, processes: Processes) -> Iterator[Process]:
    """:returns: what a process started, and that in turn, without terminals, whose windows are their own."""
    children: dict[int, list[Process]] = {}
    for process in processes.values():
        children.setdefault(process.parent, []).append(process)
    waiting = children.pop(pid, [])
    while waiting:
        process = waiting.pop()
        if not _is_terminal(process):
            yield process
            waiting += children.pop(process.pid, [])


def holds_terminal(pid: int, proc: str = "/proc") -> bool:
    """:returns: whether a process has the controlling side of a terminal open, or hides what it has open."""
    try:
        with os.scandir(f"{proc}/{pid}/fd") as entries:
            return any(os.path.basename(_target(entry.path)) == "ptmx" for entry in entries)
    except OSError:
        return True


def _target(link: str) -> str:
    try:
        return os.readlink(link)
    except OSError:
        return ""  # it was closed meanwhile


def own_windows(processes: Processes, own: int) -> frozenset[int]:
    """
    Find the processes whose windows can show a question of IronCurtain, or answer it.

    :param own: the id of this process.
    :returns: all above a process of IronCurtain; where one is in a multiplexer, also all above any multiplexer.
    """
    ours = {own, *(each.pid for each in processes.values() if _is_ours(each))}
    found = frozenset(pid for each in ours for pid in above(each, processes))
    if any(_is_multiplexer(processes[pid]) for pid in found if pid in processes):
        multiplexers = [each.pid for each in processes.values() if _is_multiplexer(each)]
        found |= {pid for each in multiplexers for pid in above(each, processes)}
    return found


def _is_ours(process: Process) -> bool:
    words = process.words[:_WORDS]
    return any(os.path.basename(word) == _NAME or word.startswith(f"{_NAME}.") for word in words)


def _is_multiplexer(process: Process) -> bool:
    names = (process.name.partition(":")[0], os.path.basename(process.program))
    return any(_MULTIPLEXERS.fullmatch(name.lower()) for name in names)


def above(pid: int, processes: Processes) -> Iterator[int]:
    """:returns: a process, the one that started it, and so on."""
    seen: Collection[int] = set()
    while pid > 1 and pid not in seen:
        yield pid
        seen = {*seen, pid}
        pid = processes[pid].parent if pid in processes else 0
