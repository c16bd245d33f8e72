from __future__ import annotations

import contextlib
import os
import ssl
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding
from OpenSSL import SSL
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.errors import ConfigurationError, UsageError
from ironcurtain.mitm_proxy.authority import AUTHORITY_LIFETIME, LEAF_LIFETIME, RENEWED_BEFORE, Authority

NOW = 1_800_000_000.0
YEAR, WEEK = AUTHORITY_LIFETIME.total_seconds(), LEAF_LIFETIME.total_seconds()
LOAD = """
import sys, time
from pathlib import Path
from ironcurtain.mitm_proxy.authority import Authority
sys.stdout.write(Authority.load_or_make(Path(sys.argv[1]), time.time).certificate_pem.decode())
"""


class Case(SynchronousTestCase):
    def setUp(self) -> None:
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.directory = Path(temporary.name) / "home" / "ca"
        self.now = NOW

    def load(self) -> Authority:
        return Authority.load_or_make(self.directory, lambda: self.now)


class KeepingTests(Case):
    def test_it_is_made_once(self) -> None:
        first, second = self.load(), self.load()
        self.assertEqual(first.certificate_pem, second.certificate_pem)
        second.leaf("a.example").certificate.verify_directly_issued_by(
            x509.load_pem_x509_certificate(first.certificate_pem)
        )

    def test_only_its_owner_may_read_it(self) -> None:
        self.load()
        self.assertEqual(self.directory.stat().st_mode & 0o777, 0o700)
        modes = {path.name: path.stat().st_mode & 0o777 for path in self.directory.iterdir()}
        self.assertEqual(modes, {"authority.pem": 0o600, "ca.pem": 0o600, "authority.lock": 0o600})

    def test_the_file_to_give_away_holds_no_key(self) -> None:
        authority = self.load()
        self.assertEqual(authority.certificate_path.read_bytes(), authority.certificate_pem)
        self.assertNotIn(b"PRIVATE", authority.certificate_pem)
        self.assertEqual(authority.certificate_pem.count(b"BEGIN"), 1)

    def test_that_file_is_made_anew_if_it_is_lost_or_wrong(self) -> None:
        authority = self.load()
        for spoil in (authority.certificate_path.unlink, lambda: authority.certificate_path.write_bytes(b"x")):
            spoil()
            self.load()
            self.assertEqual(authority.certificate_path.read_bytes(), authority.certificate_pem)

    def test_processes_that_start_together_make_one(self) -> None:
        processes = [
            subprocess.Popen([sys.executable, "-c", LOAD, str(self.directory)], stdout=subprocess.PIPE)
            for _ in range(4)
        ]
        self.assertEqual(len({process.communicate(timeout=60)[0] for process in processes}), 1)
        self.assertEqual([process.returncode for process in processes], [0] * 4)

    def test_one_that_expires_soon_is_replaced(self) -> None:
        first = self.load().certificate_pem
        self.now = NOW + YEAR - RENEWED_BEFORE - 1
        self.assertEqual(self.load().certificate_pem, first)
        self.now += 2
        second = self.load()
        self.assertNotEqual(second.certificate_pem, first)
        self.assertEqual(second.certificate_path.read_bytes(), second.certificate_pem)

    def test_so_is_one_of_the_future(self) -> None:
        first = self.load().certificate_pem
        self.now = NOW - 2 * 86400
        self.assertNotEqual(self.load().certificate_pem, first)

    def test_one_that_others_may_read_is_refused(self) -> None:
        self.load()
        (self.directory / "authority.pem").chmod(0o640)
        error = self.assertRaises(ConfigurationError, self.load)
        self.assertIn("chmod 600", str(error))

    def test_a_damaged_one_is_refused(self) -> None:
        self.load()
        kept = self.directory / "authority.pem"
        whole = kept.read_bytes()
        other = Authority.load_or_make(self.directory.parent / "other", lambda: NOW)
        half = whole[: whole.index(b"-----BEGIN CERTIFICATE")]
        for data in (b"", b"x", half, whole[len(half) :], half + other.certificate_pem, whole[:-200]):
            kept.write_bytes(data)
            error = self.assertRaises(ConfigurationError, self.load)
            self.assertIn("delete it", str(error))

    def test_links_and_other_files_are_not_followed(self) -> None:
        self.load()
        kept = self.directory / "authority.pem"
        kept.rename(self.directory / "elsewhere")
        kept.symlink_to("elsewhere")
        self.assertRaises(ConfigurationError, self.load)
        kept.unlink()
        os.mkfifo(kept, 0o600)
        self.assertRaises(ConfigurationError, self.load)
        link = self.directory.parent / "link"
        link.symlink_to(self.directory)
        self.assertRaises(UsageError, Authority.load_or_make, link, lambda: NOW)


class LeafTests(Case):
    def test_a_host_keeps_its_certificate_and_all_share_a_key(self) -> None:
        authority = self.load()
        first = authority.leaf("a.example")
        self.assertIs(authority.leaf("a.example"), first)
        other = authority.leaf("b.example")
        self.assertIsNot(other, first)
        self.assertIs(other.key, first.key)

    def test_it_is_made_anew_at_half_of_its_life(self) -> None:
        authority = self.load()
        first = authority.leaf("a.example")
        self.now = NOW + WEEK / 2
        self.assertIs(authority.leaf("a.example"), first)
        self.now += 1
        self.assertIsNot(authority.leaf("a.example"), first)

    def test_a_strict_client_takes_it_for_its_host_and_no_other(self) -> None:
        """The client is the standard library's, with the flag that Python 3.13 sets by itself."""
        authority = Authority.load_or_make(self.directory, time.time)
        self.assertEqual(self.handshake(authority, "api.anthropic.com"), "")
        self.assertIn("Hostname mismatch", self.handshake(authority, "api.openai.com"))
        stranger = Authority.load_or_make(self.directory.parent / "other", time.time)
        self.assertNotEqual(self.handshake(authority, "api.anthropic.com", trusted=stranger), "")

    def handshake(self, authority: Authority, wanted: str, trusted: Authority | None = None) -> str:
        leaf = authority.leaf("api.anthropic.com")
        server_context = SSL.Context(SSL.TLS_SERVER_METHOD)
        server_context.use_certificate(leaf.certificate)
        server_context.use_privatekey(leaf.key)
        server_context.check_privatekey()
        server = SSL.Connection(server_context, None)
        server.set_accept_state()
        context = ssl.create_default_context(cadata=(trusted or authority).certificate_pem.decode())
        context.verify_flags |= ssl.VERIFY_X509_STRICT
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        client = context.wrap_bio(incoming, outgoing, server_hostname=wanted)
        for _ in range(4):
            try:
                with contextlib.suppress(ssl.SSLWantReadError):
                    client.do_handshake()
            except ssl.SSLCertVerificationError as e:
                return e.verify_message
            if data := outgoing.read():
                server.bio_write(data)
            with contextlib.suppress(SSL.WantReadError):
                server.do_handshake()
            with contextlib.suppress(SSL.WantReadError):
                incoming.write(server.bio_read(1 << 16))
        self.assertEqual(client.getpeercert(True), leaf.certificate.public_bytes(Encoding.DER))
        return ""
