"""A reactor without time, and an authorization server without a network."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from twisted.internet.defer import Deferred
from twisted.internet.testing import MemoryReactorClock
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.accounts.kept import KeptLogins
from ironcurtain.accounts.kept_account import KeptAccount
from ironcurtain.accounts.login_files import read_login
from ironcurtain.accounts.renewing import RenewalRequest
from ironcurtain.secrets.redaction import Redactor
from tests.accounts.samples import CANARY, claude_file

NOW = 1_790_000_000.0


class EndingReactor(MemoryReactorClock):
    """:ivar before_end: what is called before it ends."""

    def __init__(self) -> None:
        super().__init__()
        self.before_end: list[Callable[[], Any]] = []

    def addSystemEventTrigger(self, phase: str, eventType: str, callable: Any, *args: Any, **kw: Any) -> Any:
        """See ``IReactorCore``."""
        assert (phase, eventType) == ("before", "shutdown")
        self.before_end.append(callable)
        return callable

    def removeSystemEventTrigger(self, triggerID: Any) -> None:
        """See ``IReactorCore``."""
        self.before_end.remove(triggerID)


class TokenServer:
    """
    Answers when a test says so, and accepts each refresh token once.

    :ivar asked: the refresh tokens of the requests.
    """

    def __init__(self, valid: str) -> None:
        self.valid, self.issued = valid, 0
        self.asked: list[str] = []
        self.open: list[Deferred[tuple[int, bytes]]] = []

    def post(self, request: RenewalRequest) -> Deferred[tuple[int, bytes]]:
        """See :data:`ironcurtain.accounts.kept_account.Post`."""
        self.asked.append(json.loads(request.body.reveal())["refresh_token"])
        self.open.append(Deferred())
        return self.open[-1]

    def answer(self, **changes: Any) -> None:
        """Answer the oldest open request."""
        if self.asked[-1] != self.valid:
            self.refuse()
            return
        self.issued += 1
        self.valid = f"{CANARY}-r{self.issued}"
        fields = {"access_token": f"{CANARY}-a{self.issued}", "refresh_token": self.valid, "expires_in": 3600}
        self.open.pop(0).callback((200, json.dumps({**fields, **changes}).encode()))

    def refuse(self, status: int = 400, code: str = "invalid_grant") -> None:
        """Refuse the oldest open request."""
        self.open.pop(0).callback((status, json.dumps({"error": code}).encode()))


class AccountTestCase(SynchronousTestCase):
    """Tests with a kept Claude login."""

    def setUp(self) -> None:
        """Write the login."""
        self.directory = Path(tempfile.mkdtemp(prefix="ic-accounts-"))
        self.addCleanup(shutil.rmtree, self.directory)
        self.file = KeptLogins(self.directory / "accounts").of("claude")
        self.file.lock()
        login = read_login("claude", str(self.file.path), claude_file())
        assert login.refresh is not None
        self.file.write(login)
        self.server, self.redactor = TokenServer(login.refresh.reveal()), Redactor()
        self.reactor = EndingReactor()

    def account(self) -> KeptAccount:
        """:returns: the account as another process of the home has it."""
        return KeptAccount(self.file, self.server.post, self.reactor, lambda: NOW, self.redactor)
