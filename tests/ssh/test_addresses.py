from __future__ import annotations

import errno
import socket

from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.errors import Unavailable, UsageError
from ironcurtain.ssh.addresses import check, check_address, family, refusal

OTHERS = ["192.0.2.1", "2001:db8::1"]
"""For documentation only (RFC 5737 and 3849)."""


class AddressTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.busy = socket.socket()
        self.addCleanup(self.busy.close)
        self.busy.bind(("127.0.0.1", 0))
        self.port: int = self.busy.getsockname()[1]

    def test_the_two_kinds(self) -> None:
        self.assertEqual([family(a) for a in ("0.0.0.0", "::1")], [socket.AF_INET, socket.AF_INET6])

    def test_what_is_no_address(self) -> None:
        self.busy.close()
        for text in ("localhost", "", "127.0.0.1:22", "1.2.3"):
            error = self.assertRaises(UsageError, check, ["127.0.0.1", text], self.port)
            self.assertIn("give an IP address", str(error))

    def test_sockets_of_systemd(self) -> None:
        for text in ("systemd:domain=INET:index=0", "systemd:domain=INET6:name=ironcurtain-ssh.socket"):
            check_address(text)
            check([text], self.port)
        for text in ("systemd:", "systemd:domain=UNIX:index=0", "systemd:domain=INET", "systemd:domain=INET:index=-1"):
            error = self.assertRaises(UsageError, check_address, text)
            self.assertIn("write systemd:domain=INET:index=0", str(error))
            self.assertRaises(UsageError, check, [text], self.port)

    def test_a_free_port_stays_free(self) -> None:
        self.busy.close()
        for _ in range(2):
            check(["127.0.0.1", "::1"], self.port)

    def test_a_busy_port(self) -> None:
        self.busy.listen()
        error = self.assertRaises(Unavailable, check, ["127.0.0.2", "127.0.0.1"], self.port)
        self.assertIn(f"127.0.0.1, port {self.port}: it is in use", str(error))

    def test_an_address_of_another_machine_is_passed_over(self) -> None:
        self.busy.close()
        check([*OTHERS, "127.0.0.1"], self.port)

    def test_nothing_but_addresses_of_other_machines(self) -> None:
        error = self.assertRaises(Unavailable, check, OTHERS, self.port)
        self.assertIn("this machine has none of the addresses 192.0.2.1, 2001:db8::1", str(error))
        self.assertIn("no address is named", str(self.assertRaises(Unavailable, check, [], self.port)))

    def test_a_privileged_port(self) -> None:
        self.assertIn("only root may use ports below 1024", str(refusal("::", 22, errno.EACCES)))
        self.assertIn("No buffer space", str(refusal("::", 22, errno.ENOBUFS)))
