"""
Read the command line of an interpreter, or of a program that starts another one: which files does it name?

Only the text of the command line counts. What is not understood names nothing.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence

import msgspec

SEARCHED = ("PYTHONPATH", "NODE_PATH", "PERL5LIB", "RUBYLIB")
"""Environment variables with directories, separated by colons, in which interpreters look for modules."""

_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=")
_OPERATORS = frozenset("();<>|&")


class CommandLine(msgspec.Struct):
    """
    What a command line names. Paths are as they are written.

    :param scripts: words of which the first that exists is the program's script.
    :param files: other files that the program reads when it starts.
    :param directories: where it looks for modules.
    :param project: a directory whose environment the program uses.
    :param own_packages: whether it uses the packages that a person installed for a Python of the system.
    :param cwd: the working directory that it changes to; empty: none.
    :param commands: the programs that it starts, with their arguments.
    """

    scripts: tuple[str, ...] = ()
    files: list[str] = msgspec.field(default_factory=list)
    directories: list[str] = msgspec.field(default_factory=list)
    project: str | None = None
    own_packages: bool = False
    cwd: str = ""
    commands: list[tuple[str, tuple[str, ...]]] = msgspec.field(default_factory=list)


class _Options(msgspec.Struct, frozen=True):
    """
    The options of a program: names, separated by spaces.

    :param value: those with a value, which may be the next word.
    :param attached: letters of those with a value in the same word only.
    :param file: those of which the value is a file that is read, ``directory`` one with modules.
    :param last: those after which there is no script, but code or the name of a module.
    :param cwd: those that change the working directory.
    :param commands: words before a script that are none.
    """

    value: str = ""
    attached: str = ""
    file: str = ""
    directory: str = ""
    last: str = ""
    cwd: str = ""
    commands: str = ""

    def takes(self, name: str) -> bool:
        """:returns: whether an option has a value."""
        return any(name in names.split() for names in (self.value, self.file, self.directory, self.last, self.cwd))


_Reader = Callable[[list[str], Mapping[str, str], CommandLine], None]

_PYTHON = _Options(value="-W -X --check-hash-based-pycs", last="-c -m")
_NODE = _Options(
    value="-C --conditions --input-type --title --inspect-port --icu-data-dir --diagnostic-dir --redirect-warnings "
    "--disable-warning --unhandled-rejections --dns-result-order --tls-cipher-list --trace-event-categories "
    "--watch-path --stack-trace-limit --secure-heap --secure-heap-min --max-http-header-size --report-dir "
    "--report-directory --report-filename --report-signal --experimental-default-type --localstorage-file",
    file="-r --require --import --loader --experimental-loader --env-file --env-file-if-exists --openssl-config "
    "--experimental-config-file --snapshot-blob",
    last="-e --eval -p --print -pe --run",
)
_DENO = _Options(
    value="-L --log-level --seed --location --ext",
    attached="ARWENSIr",
    file="-c --config --import-map --cert --preload --import --env-file",
    last="-e",
    commands="run serve test bench watch",
)
_BUN = _Options(
    value="--port --conditions --filter -F --define -d --loader -l --install --inspect-port",
    file="-r --preload --require --import --env-file -c --config --tsconfig-override",
    last="-e --eval -p --print",
    cwd="--cwd",
    commands="run",
)
_RUBY = _Options(value="-E --encoding", attached="WKTxF0i", file="-r", directory="-I", last="-e", cwd="-C")
_PERL = _Options(attached="MmCDx0liFV", directory="-I", last="-e -E")
_SHELL = _Options(value="-o -O", file="--rcfile --init-file")
_ENV = _Options(value="-u --unset -S --split-string", cwd="-C --chdir")
_UV = _Options(
    value="--config-file --cache-dir --color -p --python --with --with-requirements --extra --group --no-group "
    "--only-group --no-extra --env-file --index --default-index -i --index-url --extra-index-url -f --find-links "
    "--package --project --python-platform --prerelease --resolution --exclude-newer --refresh-package -P "
    "--upgrade-package --allow-insecure-host --reinstall-package -C --config-setting --link-mode --index-strategy "
    "--keyring-provider",
    directory="--with-editable",
    cwd="--directory",
)


class _Scan:
    """
    Options up to the first word that is none.

    :ivar given: the options with their values; empty for none.
    :ivar rest: that word and all after it; empty if an option said what to run.
    """

    def __init__(self, words: Sequence[str], options: _Options) -> None:
        self._options, self.rest, self.given = options, list(words), list[tuple[str, str]]()
        while self.rest and len(word := self.rest[0]) > 1 and word[0] in "-+":
            del self.rest[0]
            if word == "--":
                break
            if word.startswith("--") or options.takes(word):
                name, equals, value = word.partition("=")
                self.given.append((name, value if equals or not options.takes(name) else self._next()))
            else:
                self._short(word)
            if self.given[-1][0] in options.last.split():
                self.rest = []

    def __contains__(self, name: str) -> bool:
        return any(name == given for given, _ in self.given)

    def values(self, names: str) -> list[str]:
        """:returns: the values of some options."""
        return [value for name, value in self.given if name in names.split()]

    def into(self, line: CommandLine) -> None:
        """Add what the options name."""
        line.files += self.values(self._options.file)
        line.directories += self.values(self._options.directory)
        line.cwd = "".join(self.values(self._options.cwd)[-1:]) or line.cwd

    def _short(self, word: str) -> None:
        for index, letter in enumerate(word[1:], 2):
            name, value = f"-{letter}", word[index:]
            if self._options.takes(name):
                self.given.append((name, value or self._next()))
                return
            self.given.append((name, ""))
            if letter in self._options.attached:
                return

    def _next(self) -> str:
        return self.rest.pop(0) if self.rest else ""


def read_command_line(program: str, arguments: Sequence[str], variables: Mapping[str, str]) -> CommandLine:
    """
    :param program: name of the program, without its directory.
    :param variables: the program's environment; only ``HOME`` is used.
    """
    line = CommandLine()
    for pattern, read in _READERS:
        if re.fullmatch(pattern, program):
            read(list(arguments), variables, line)
            break
    return line


def _python(words: list[str], variables: Mapping[str, str], line: CommandLine) -> None:
    scan = _Scan(words, _PYTHON)
    line.scripts = tuple(scan.rest)
    line.own_packages = not ("-I" in scan or "-s" in scan or variables.get("PYTHONNOUSERSITE"))


def _scripted(options: _Options) -> _Reader:
    def read(words: list[str], variables: Mapping[str, str], line: CommandLine) -> None:
        scan = _Scan(words, options)
        scan.into(line)
        if scan.rest and scan.rest[0] in options.commands.split():
            scan = _Scan(scan.rest[1:], options)
            scan.into(line)
        line.scripts = tuple(scan.rest)

    return read


def _shell(words: list[str], variables: Mapping[str, str], line: CommandLine) -> None:
    scan = _Scan(words, _SHELL)
    scan.into(line)
    if "-c" not in scan:
        line.scripts = tuple(scan.rest)
    elif scan.rest:
        _commands(scan.rest[0], variables.get("HOME", "/"), line)


def _commands(text: str, home: str, line: CommandLine) -> None:
    """The commands of a shell, as far as they stand there without substitutions."""
    for command in _simple_commands(text):
        words = [re.sub(r"\A(?:~|\$HOME|\$\{HOME\})(?=/|\Z)", lambda _: home, word) for word in command]
        while words and (_ASSIGNMENT.match(words[0]) or words[0] in ("exec", "command", "nohup", "time")):
            del words[0]
        if words[:1] == ["cd"] and len(words) == 2 and not line.commands:
            line.cwd = os.path.join(line.cwd, words[1])
        elif words[:1] in (["."], ["source"]):
            line.files += words[1:2]
        elif words:
            line.commands.append((words[0], tuple(words[1:])))


def _simple_commands(text: str) -> Iterator[list[str]]:
    lexer = shlex.shlex(text, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    words: list[str] = []
    try:
        tokens = list(lexer)
    except ValueError:
        return
    redirected = False
    for token in tokens:
        if not set(token) <= _OPERATORS:
            if not redirected:
                words.append(token)
            redirected = False
        elif set(token) & {"<", ">"}:
            redirected = True
        else:
            yield words
            words = []
    yield words


def _env(words: list[str], variables: Mapping[str, str], line: CommandLine) -> None:
    scan = _Scan(words, _ENV)
    scan.into(line)
    words = [word for text in scan.values("-S --split-string") for word in _split(text)] + scan.rest
    while words and (words[0] == "-" or _ASSIGNMENT.match(words[0])):
        name, _, value = words.pop(0).partition("=")
        line.directories += [part for part in value.split(":") if part and name in SEARCHED]
    if words:
        line.commands.append((words[0], tuple(words[1:])))


def _split(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError:
        return []


def _uv(words: list[str], variables: Mapping[str, str], line: CommandLine) -> None:
    scan = _Scan(words, _UV)
    if scan.rest[:1] != ["run"]:
        return
    run = _Scan(scan.rest[1:], _UV)
    for part in (scan, run):
        part.into(line)
        line.project = "".join(part.values("--project")[-1:]) or line.project or "."
    if run.rest and "-m" not in run and "--module" not in run:
        line.commands.append((run.rest[0], tuple(run.rest[1:])))


_READERS: tuple[tuple[str, _Reader], ...] = (
    (r"(?:python|pypy)[0-9.]*", _python),
    (r"node|nodejs|tsx|ts-node", _scripted(_NODE)),
    (r"deno", _scripted(_DENO)),
    (r"bun", _scripted(_BUN)),
    (r"ruby[0-9.]*", _scripted(_RUBY)),
    (r"perl[0-9.]*", _scripted(_PERL)),
    (r"sh|bash|dash|zsh", _shell),
    (r"env", _env),
    (r"uv", _uv),
)
