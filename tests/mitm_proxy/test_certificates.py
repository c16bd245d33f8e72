from __future__ import annotations

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.mitm_proxy.authority import (
    AUTHORITY_LIFETIME,
    LEAF_LIFETIME,
    new_authority,
    new_key,
    new_leaf,
    seconds_left,
)

NOW = 1_800_000_000.0
YEAR = AUTHORITY_LIFETIME.total_seconds()


class CertificateTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.signer = new_authority(NOW)
        self.leaf = new_leaf(self.signer, new_key(), "api.anthropic.com", NOW)

    def test_the_authority_says_what_strict_clients_want(self) -> None:
        extensions = self.signer.certificate.extensions
        constraints = extensions.get_extension_for_class(x509.BasicConstraints)
        self.assertEqual((constraints.critical, constraints.value.ca, constraints.value.path_length), (True, True, 0))
        usage = extensions.get_extension_for_class(x509.KeyUsage)
        self.assertTrue(usage.critical and usage.value.key_cert_sign)
        self.assertFalse(usage.value.digital_signature)
        extensions.get_extension_for_class(x509.SubjectKeyIdentifier)
        self.assertIsInstance(self.signer.key.curve, ec.SECP256R1)

    def test_so_does_a_leaf(self) -> None:
        certificate, extensions = self.leaf.certificate, self.leaf.certificate.extensions
        certificate.verify_directly_issued_by(self.signer.certificate)
        names = extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        self.assertEqual(names.get_values_for_type(x509.DNSName), ["api.anthropic.com"])
        self.assertFalse(extensions.get_extension_for_class(x509.BasicConstraints).value.ca)
        usage = extensions.get_extension_for_class(x509.KeyUsage)
        self.assertTrue(usage.critical and usage.value.digital_signature)
        self.assertFalse(usage.value.key_cert_sign)
        self.assertEqual(
            list(extensions.get_extension_for_class(x509.ExtendedKeyUsage).value), [ExtendedKeyUsageOID.SERVER_AUTH]
        )
        issuer = extensions.get_extension_for_class(x509.AuthorityKeyIdentifier).value
        own = self.signer.certificate.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value
        self.assertEqual(issuer.key_identifier, own.digest)

    def test_two_authorities_have_different_names_and_keys(self) -> None:
        other = new_authority(NOW)
        self.assertNotEqual(other.certificate.subject, self.signer.certificate.subject)
        self.assertNotEqual(other.key.private_numbers(), self.signer.key.private_numbers())

    def test_lifetimes(self) -> None:
        self.assertEqual(seconds_left(self.signer.certificate, NOW), YEAR)
        self.assertEqual(seconds_left(self.leaf.certificate, NOW), LEAF_LIFETIME.total_seconds())
        self.assertLess(seconds_left(self.leaf.certificate, NOW + 8 * 86400), 0)
        self.assertGreater(seconds_left(self.leaf.certificate, NOW - 3600), 0)
        self.assertEqual(seconds_left(self.leaf.certificate, NOW - 2 * 86400), 0)

    def test_a_leaf_does_not_outlive_its_authority(self) -> None:
        late = new_leaf(self.signer, new_key(), "api.anthropic.com", NOW + YEAR - 60)
        self.assertEqual(seconds_left(late.certificate, NOW + YEAR - 60), 60)

    def test_a_long_name_fits(self) -> None:
        host = ".".join(["a" * 60] * 4)
        names = new_leaf(self.signer, new_key(), host, NOW).certificate.extensions
        alternative = names.get_extension_for_class(x509.SubjectAlternativeName).value
        self.assertEqual(alternative.get_values_for_type(x509.DNSName), [host])

    def test_no_key_is_shown(self) -> None:
        self.assertNotIn("key", repr(self.leaf) + repr(self.signer))
