"""The certificates that programs in sandboxes trust."""

from __future__ import annotations

import time

from cryptography.hazmat.primitives.serialization import Encoding
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.mitm_proxy.authority import new_authority
from ironcurtain.sandbox.certificates import bundle, java_trust_store


class TrustStoreTests(SynchronousTestCase):
    def test_java_gets_each_certificate_of_a_bundle(self) -> None:
        ours = [new_authority(time.time()).certificate for _ in range(2)]
        store = java_trust_store(b"".join(each.public_bytes(Encoding.PEM) for each in ours))
        for each in ours:
            self.assertIn(each.public_bytes(Encoding.DER), store)

    def test_certificates_of_this_system_can_be_stored(self) -> None:
        authority = new_authority(time.time()).certificate
        _, trusted = bundle(authority.public_bytes(Encoding.PEM))
        self.assertGreater(len(java_trust_store(trusted)), len(trusted) // 2)
