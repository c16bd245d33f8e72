"""Which addresses may be dialled."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.http.public import is_public

NOT_PUBLIC = """
0.0.0.0 10.1.2.3 100.64.0.1 127.0.0.1 127.255.255.254 169.254.169.254 169.254.170.2 172.16.0.1 172.31.255.255
192.0.0.1 192.0.2.1 192.88.99.1 192.168.1.1 198.18.0.1 198.51.100.1 203.0.113.1 224.0.0.1 239.255.255.255 240.0.0.1
255.255.255.255 168.63.129.16 100.100.100.200
:: ::1 ::7f00:1 ::ffff:127.0.0.1 ::ffff:10.0.0.1 ::ffff:169.254.169.254 64:ff9b::7f00:1 64:ff9b::a9fe:a9fe
64:ff9b:1::1 100::1 2001:db8::1 2002:7f00:1:: 2002:a00:1:: fc00::1 fd00:ec2::254 fe80::1 fe80::1%eth0 fec0::1 ff02::1
2001:0:7f00:1:: 127.1 2130706433 0x7f.1 017700000001 localhost 1.1.1.1/32
"""

PUBLIC = ["1.1.1.1", "8.8.8.8", "160.79.104.10", "2606:4700::6810:1", "2a00:1450:4001::200a", "64:ff9b::101:101"]


class AddressTests(SynchronousTestCase):
    def test_addresses_inside(self) -> None:
        self.assertEqual([address for address in NOT_PUBLIC.split() if is_public(address)], [])

    def test_addresses_outside(self) -> None:
        self.assertEqual([address for address in PUBLIC if not is_public(address)], [])

    @given(st.ip_addresses(v=4))
    def test_an_ipv4_address_inside_an_ipv6_one_counts(self, address: object) -> None:
        if not is_public(str(address)):
            octets = [int(octet) for octet in str(address).split(".")]
            high, low = octets[0] << 8 | octets[1], octets[2] << 8 | octets[3]
            for written in (f"::ffff:{address}", f"64:ff9b::{address}", f"2002:{high:x}:{low:x}::1"):
                self.assertFalse(is_public(written), written)
