"""A Kerberos realm on this machine, and squid as a proxy that wants its tickets."""

from __future__ import annotations

import os
import subprocess
import tempfile
from contextlib import suppress
from pathlib import Path
from socket import create_connection
from time import monotonic, sleep
from unittest import TestCase

from tests.ports import free_port
from tests.programs import program

REALM = "IRON.TEST"
HELPER = "/usr/lib/squid/negotiate_kerberos_auth"
START_SECONDS = 60.0


class Realm:
    """
    A realm with the user ``me`` and the service ``HTTP/localhost``, until the end of a test.

    :raises SkipTest: a program is missing.
    :ivar variables: what a process needs in its environment.
    """

    def __init__(self, case: TestCase) -> None:
        self._case = case
        kdc, admin, make, self._kinit = map(program, ("krb5kdc", "kadmin.local", "kdb5_util", "kinit"))
        program("squid"), program(HELPER)
        self.top = Path(case.enterContext(tempfile.TemporaryDirectory(prefix="ic-realm-")))
        self.top.chmod(0o755)  # squid gives up being root
        self._port = free_port()
        self._configure()
        self.variables = {"KRB5_CONFIG": f"{self.top}/krb5.conf", "KRB5CCNAME": f"FILE:{self.top}/tickets"}
        self._environ = {**os.environ, **self.variables, "KRB5_KDC_PROFILE": f"{self.top}/kdc.conf"}
        self._run(make, "create", "-s", "-r", REALM, "-P", "master")
        for name, keytab in (("me", "me.keytab"), ("HTTP/localhost", "proxy.keytab")):
            self._run(admin, "-r", REALM, "-q", f"addprinc -randkey {name}")
            self._run(admin, "-r", REALM, "-q", f"ktadd -k {self.top / keytab} {name}")
        (self.top / "proxy.keytab").chmod(0o644)
        self._serve(self._port, kdc, "-n", "-r", REALM)

    def enter(self) -> None:
        """Set the variables in this process, whose libraries read them, until the end of the test."""
        before = dict(os.environ)
        os.environ.update(self.variables)
        self._case.addCleanup(os.environ.update, before)
        for name in self.variables.keys() - before:
            self._case.addCleanup(os.environ.pop, name)

    def log_in(self) -> None:
        """Get the ticket of ``me``."""
        self._run(self._kinit, "-k", "-t", f"{self.top}/me.keytab", "me")

    def squid(self) -> int:
        """
        Start the proxy.

        :returns: its port.
        """
        port, logs = free_port(), self.top / "logs"
        logs.mkdir()
        logs.chmod(0o777)
        (self.top / "hosts").write_text("127.0.0.1 echo.example far.example\n")
        (self.top / "squid.conf").write_text(
            f"http_port 127.0.0.1:{port}\nvisible_hostname localhost\npid_filename none\npinger_enable off\n"
            f"hosts_file {self.top}/hosts\naccess_log stdio:{logs}/access\ncache_log {logs}/cache\ncache deny all\n"
            f"netdb_filename none\ncoredump_dir {logs}\nshutdown_lifetime 0 seconds\n"
            f"auth_param negotiate program {HELPER} -k {self.top}/proxy.keytab -s HTTP/localhost\n"
            "auth_param negotiate children 1 startup=1\nacl known proxy_auth REQUIRED\n"
            "http_access allow known\nhttp_access deny all\n"
        )
        self._serve(port, program("squid"), "-N", "-d", "1", "-n", f"test{port}", "-f", f"{self.top}/squid.conf")
        return port

    def accept(self, head: str) -> str:
        """
        Do what the proxy does with a token.

        :param head: of a request, with one ``Proxy-Authorization``.
        :returns: the proof of the service, which squid does not send with tunnels.
        """
        words, asked = (
            (HELPER, "-k", f"{self.top}/proxy.keytab", "-s", "HTTP/localhost"),
            head.split("Proxy-Authorization: Negotiate ")[1].split()[0],
        )
        done = subprocess.run(
            words, env=self._environ, input=f"YR {asked}\n", capture_output=True, text=True, check=False
        )
        fields = dict(field.partition("=")[::2] for field in done.stdout.split()[1:])
        self._case.assertEqual(fields.get("user"), f"me@{REALM}", done.stdout + done.stderr)
        return fields["token"]

    def users(self) -> list[str]:
        """:returns: who made each tunnel that has ended, as the proxy has it."""
        lines = (self.top / "logs" / "access").read_text().splitlines()
        return [line.split()[7] for line in lines if "TCP_TUNNEL/200" in line]

    def _configure(self) -> None:
        (self.top / "krb5.conf").write_text(
            f"[libdefaults]\n default_realm = {REALM}\n dns_lookup_kdc = false\n dns_lookup_realm = false\n"
            " dns_canonicalize_hostname = false\n rdns = false\n udp_preference_limit = 1\n"
            f"[realms]\n {REALM} = {{\n  kdc = 127.0.0.1:{self._port}\n }}\n"
        )
        (self.top / "kdc.conf").write_text(
            f"[kdcdefaults]\n kdc_listen = 127.0.0.1:{self._port}\n kdc_tcp_listen = 127.0.0.1:{self._port}\n"
            f"[realms]\n {REALM} = {{\n  database_name = {self.top}/principal\n"
            f"  key_stash_file = {self.top}/stash\n }}\n"
        )

    def _run(self, *words: str) -> None:
        done = subprocess.run(
            words,
            env=self._environ,
            cwd=self.top,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        self._case.assertEqual(done.returncode, 0, done.stdout)

    def _serve(self, port: int, *words: str) -> None:
        """Run a server to the end of the test, and wait until it listens."""
        with open(self.top / f"{port}.log", "wb") as log:
            server = subprocess.Popen(words, env=self._environ, cwd=self.top, stdout=log, stderr=log)
        self._case.addCleanup(server.wait)
        self._case.addCleanup(server.terminate)
        end = monotonic() + START_SECONDS
        while True:
            with suppress(OSError), create_connection(("127.0.0.1", port)):
                return
            failed = server.poll() is not None or monotonic() > end
            self._case.assertFalse(failed, (self.top / f"{port}.log").read_text())
            sleep(0.02)
