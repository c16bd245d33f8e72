"""Clone a repository into a workspace before its agent starts: as the session's account, with a time limit."""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.error import ProcessExitedAlready
from twisted.internet.interfaces import IDelayedCall, IReactorProcess, IReactorTime
from twisted.internet.protocol import ProcessProtocol
from twisted.python.failure import Failure

from ironcurtain.errors import Unavailable
from ironcurtain.files.removal import remove, remove_at
from ironcurtain.process.accounts import Account
from ironcurtain.project.gitsettings import MalformedSettings, parse
from ironcurtain.servers.files.failures import FileError
from ironcurtain.servers.files.walk import DIRECTORY, OpenRoot, Place, open_regular, parent
from ironcurtain.servers.git_remote.addresses import checked_address, clone_command, clone_environment
from ironcurtain.text.display import one_line

CLONE_SECONDS = 600.0
"""How long a clone may take (a large repository on a slow line)."""

KILL_SECONDS = 5.0
"""How long git may take to leave after SIGTERM, before SIGKILL."""

SAID_LIMIT = 4000
"""Most characters of git's last words that are kept for the error."""

INHERITED = ("PATH", "LANG", "TZ", "TMPDIR")
"""The variables of ours that git gets besides what the clone needs."""


class CloneReactor(IReactorProcess, IReactorTime):
    """The parts of a reactor that a clone needs."""


class CloneFailed(Unavailable):
    """The repository could not be cloned; the message holds git's last words."""

    code = "CLONE_FAILED"


async def clone(
    reactor: CloneReactor,
    address: str,
    to: Path,
    account: Account,
    environ: Mapping[str, str],
    tell: Callable[[str], None],
    seconds: float = CLONE_SECONDS,
) -> None:
    """
    Clone a repository. Cancelling ends git and all that it started.

    :param to: an empty directory that belongs to the account.
    :param tell: hears what git says about its progress, line by line.
    :raises UsageError: the address is none that may be cloned.
    :raises CloneFailed: it did not work, or took longer than ``seconds``.
    """
    checked_address(address)
    if (git := shutil.which("git", path=environ.get("PATH", os.defpath))) is None:
        raise CloneFailed("the program git is missing: install it (Debian: apt-get install git)")
    other = account if os.geteuid() == 0 and account.uid != 0 else None
    small = {name: environ[name] for name in INHERITED if name in environ}
    small["HOME"] = environ.get("HOME", account.home) if other is None else account.home
    environment = clone_environment(small, environ, other is None)
    try:
        with _reachable(to, other) as place:
            command = clone_command(git, address, str(place))
            await _run(reactor, command, environment, place, other, tell, seconds)
            _check_left(place, address)
            if other is not None:
                await _run(reactor, _move(place), environment, to, other, tell, seconds)
    except BaseException:
        _empty(to)
        raise


@contextmanager
def _reachable(to: Path, other: Account | None) -> Iterator[Path]:
    """Where git clones to: another account may not be able to reach a directory below ours."""
    if other is None:
        yield to
        return
    above = Path(tempfile.mkdtemp(prefix="ironcurtain-clone-"))
    try:
        above.chmod(0o711)  # it stays ours, so that the account puts nothing else in the place of the one below
        place = above / "clone"
        place.mkdir(0o700)
        os.chown(place, other.uid, other.gid)
        yield place
    finally:
        with suppress(Unavailable):
            remove(above)


def _move(place: Path) -> list[str]:
    """Run as the account, it changes only what is the account's, whatever lies there by then, and in the directory."""
    find = shutil.which("find") or "find"
    move = ["-exec", "mv", "--target-directory=.", "--", "{}", "+"]
    return [find, str(place), "-mindepth", "1", "-maxdepth", "1", *move]


async def _run(
    reactor: CloneReactor,
    command: list[str],
    environment: dict[str, str],
    cwd: Path,
    account: Account | None,
    tell: Callable[[str], None],
    seconds: float,
) -> None:
    line = [shutil.which("setsid") or "setsid", *command]
    if account is not None:
        line = account.command(line)
    git = _Git(reactor, tell)
    reactor.spawnProcess(git, line[0], line, environment, str(cwd), childFDs={0: "w", 1: "r", 2: "r"})
    timer = reactor.callLater(seconds, git.give_up, f"it took longer than {seconds:.0f} s")
    try:
        await git.ended()
    except CancelledError:
        git.give_up("it was cancelled")
        with suppress(CloneFailed):
            await git.ended()
        raise
    finally:
        if timer.active():
            timer.cancel()


class _Git(ProcessProtocol):
    """One run of git: what it says, and how it is ended."""

    def __init__(self, clock: IReactorTime, tell: Callable[[str], None]) -> None:
        self._clock, self._tell = clock, tell
        self._said, self._group = "", 0
        self._why = ""
        self._killer: IDelayedCall | None = None
        self._waiting: list[Deferred[None]] = []

    def ended(self) -> Deferred[None]:
        """:returns: fires when git is gone, with :class:`CloneFailed` unless all went well."""
        self._waiting.append(Deferred())
        return self._waiting[-1]

    def connectionMade(self) -> None:
        assert self.transport is not None
        self._group = int(self.transport.pid or 0)
        self.transport.closeStdin()

    def errReceived(self, data: bytes) -> None:
        text = data.decode("utf-8", "replace").replace("\r", "\n")
        self._said = (self._said + text)[-SAID_LIMIT:]
        for line in filter(None, text.split("\n")):
            self._tell(one_line(line, 200))

    def processEnded(self, reason: Failure) -> None:
        if self._killer is not None and self._killer.active():
            self._killer.cancel()
        self._signal_group(signal.SIGKILL)  # whatever git started and did not wait for
        status = getattr(reason.value, "exitCode", None)
        why = self._why or ("" if status == 0 else f"failed: {self._last_words()}")
        for waiting in self._waiting:
            if waiting.called:
                continue
            if why:
                waiting.errback(Failure(CloneFailed(f"git clone {why}")))
            else:
                waiting.callback(None)

    def give_up(self, why: str) -> None:
        """End git and what it started."""
        if not self._why:
            self._why = f"was ended: {why}"
            self._signal(signal.SIGTERM)
            self._killer = self._clock.callLater(KILL_SECONDS, self._signal, signal.SIGKILL)

    def _signal(self, number: signal.Signals) -> None:
        assert self.transport is not None
        self._signal_group(number)
        with suppress(ProcessExitedAlready):
            self.transport.signalProcess(number.name.removeprefix("SIG"))

    def _signal_group(self, number: signal.Signals) -> None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._group, number)

    def _last_words(self) -> str:
        lines = [line for line in self._said.split("\n") if line.strip()]
        telling = [line for line in lines if line.startswith(("fatal:", "error:", "ssh:"))] or lines
        return one_line(" ".join(telling[-3:]), 600) or "it said nothing"


def _check_left(place: Path, address: str) -> None:
    """A clone leaves the address there, and nothing else that tells or leads anywhere."""
    try:
        settings = parse(_settings(place))
    except (FileError, OSError, MalformedSettings) as e:
        raise CloneFailed(f"git clone left settings that cannot be read: {e}") from None
    addresses = [setting.value for setting in settings if setting.key == "remote.origin.url"]
    programs = [setting.key for setting in settings if setting.runs_program]
    if addresses != [address] or programs:
        raise CloneFailed(f"git clone left settings that it should not: {', '.join(programs)}")


def _settings(place: Path) -> bytes:
    root = OpenRoot(str(place), (str(place),), os.open(place, DIRECTORY))
    try:
        with parent(Place(root, (".git", "config"))) as (descriptor, name):
            opened = open_regular(descriptor, name, f"{place}/.git/config", os.O_RDONLY)
        with open(opened, "rb") as file:
            return file.read()
    finally:
        os.close(root.descriptor)


def _empty(place: Path) -> None:
    descriptor = os.open(place, DIRECTORY)
    try:
        for name in os.listdir(descriptor):
            with suppress(OSError):  # why there is no clone is what counts
                remove_at(descriptor, name)
    finally:
        os.close(descriptor)
