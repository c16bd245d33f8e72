"""Git through an upstream proxy that wants Kerberos tickets, which git in its sandbox has none of."""

from __future__ import annotations

from ironcurtain.http.upstream_proxies import PROXY_AUTH
from ironcurtain.servers.git_remote.runner import Runner
from ironcurtain.servers.git_remote.tools import GitRemoteTools
from tests.http.proxy_stub import ProxyStub
from tests.kerberos import Realm
from tests.servers.git_remote.served import ServedCase

URL = "https://git.example/app.git"


class NegotiatingTests(ServedCase):
    async def test_token_is_added_outside_of_the_sandbox(self) -> None:
        realm = Realm(self)
        realm.enter()
        proxy = ProxyStub({"git.example": self.port.getHost().port})
        accepted = list[str]()

        def answer(head: str) -> bytes:
            accepted.append(realm.accept(head))
            return b""

        proxy.answer = answer
        where = f"http://localhost:{await proxy.start()}"
        self.addCleanup(proxy.stop)
        environ = {**self.environ, "https_proxy": where, PROXY_AUTH: "negotiate"}
        self.tools = GitRemoteTools(Runner(str(self.workspace), environ))
        with self.assertRaisesRegex(Exception, "the Kerberos ticket is missing: run kinit"):
            await self.call("git_clone", url=URL, directory="app")
        realm.log_in()
        await self.call("git_clone", url=URL, directory="app")
        self.assertEqual((self.workspace / "app" / "one").read_text(), "one\n")
        self.assertEqual(len(accepted), len(proxy.connections) - 1)
