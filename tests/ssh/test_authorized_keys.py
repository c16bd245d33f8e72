from __future__ import annotations

import base64

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.operations import Role
from ironcurtain.ssh.authorized_keys import AuthorizedKey, WrongKey, parse, parse_line, public_key, read_roles
from tests.audit.doubles import scratch
from tests.ssh.doubles import make_holder

ED25519 = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJT34JGMEJO4GYU1IBCTsWpWAARZSDuxNXd+7X7eNIl6"
OTHER = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAICNc9yrLFW0KFe0xK5jA6ZVoo0s2tNmLNyRs5i0vpNTT"


class LineTests(SynchronousTestCase):
    def test_a_line(self) -> None:
        key = parse_line(f'  roles="view, approve" {ED25519} ada@laptop  ')
        self.assertEqual((key.name, key.type, key.roles), ("ada@laptop", "ssh-ed25519", {Role.VIEW, Role.APPROVE}))
        self.assertEqual(key.line, f'roles="view,approve" {ED25519} ada@laptop')
        self.assertEqual(key.principal.name, "ada@laptop")
        self.assertEqual(len(key.fingerprint), 50)

    def test_wrong_lines(self) -> None:
        for line, why in (
            (f"{ED25519} ada", "does not say what the key may do"),
            (f'roles="" {ED25519} ada', "there is no role ''"),
            (f'roles="view,root" {ED25519} ada', "there is no role 'root'"),
            (f'roles="view",roles="admin" {ED25519} ada', "needs its roles once"),
            (f"roles=view {ED25519} ada", "needs its roles once"),
            (f'roles="view",restrict {ED25519} ada', "the option 'restrict' is not supported"),
            (f'from="10.0.0.1,::1",roles="view" {ED25519} ada', "the option 'from' is not supported"),
            (f'command="x \\" y" {ED25519} ada', "the option 'command' is not supported"),
            (f'roles="view {ED25519} ada', "there is no role|supported|quotation"),
            (f'"roles="view" {ED25519} ada', "supported|quotation|type"),
            (f'roles="view" {ED25519}', "needs a name"),
            (f'roles="view" {ED25519} ada and bob', "needs a name"),
            (f'roles="view" {ED25519} local:ada', "needs a name"),
            (f'roles="view" {ED25519} {"a" * 65}', "needs a name"),
            (f'roles="view" {ED25519[:-4]} ada', "damaged"),
            (f'roles="view" {ED25519}AAAA ada', "damaged"),
            (f'roles="view" {ED25519.replace("ssh-ed25519", "ssh-rsa")} ada', "damaged"),
            ('roles="view" ssh-dss AAAA ada', "the type is one of"),
            ('roles="view" ssh-ed25519-cert-v01@openssh.com AAAA ada', "is a certificate"),
            ('roles="view"', "needs a type and a key"),
            ("x" * 20000, "longer"),
        ):
            error = self.assertRaises(WrongKey, parse_line, line)
            self.assertRegex(str(error), why, line)

    def test_a_short_rsa_key(self) -> None:
        from cryptography.hazmat.primitives.asymmetric.rsa import generate_private_key
        from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

        made = generate_private_key(65537, 1024).public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH)
        error = self.assertRaises(WrongKey, public_key, made.decode(), frozenset({Role.VIEW}), "ada")
        self.assertIn("1024 bits", str(error))

    @given(st.text(max_size=200))
    def test_any_text_is_read_or_refused(self, text: str) -> None:
        for line in (text, f'roles="view" {text}', f"{text} {ED25519} ada"):
            if line.strip() and "\n" not in line:
                try:
                    key = parse_line(line)
                except WrongKey:
                    continue
                self.assertEqual(parse_line(key.line), key)

    @given(
        st.sets(st.sampled_from(list(Role)), min_size=1),
        st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._@+-]{0,63}", fullmatch=True),
    )
    def test_what_is_written_is_read(self, roles: set[Role], name: str) -> None:
        key = AuthorizedKey(name, frozenset(roles), "ssh-ed25519", base64.b64decode(ED25519.split()[1]))
        self.assertEqual(parse_line(key.line), key)


class FileTests(SynchronousTestCase):
    def test_a_wrong_line_keeps_nobody_else_out(self) -> None:
        listed = parse(f'# who may come in\n\nrestrict {ED25519} bob\r\nroles="admin" {OTHER} ada\r\n')
        self.assertEqual([key.name for key in listed.keys], ["ada"])
        self.assertEqual([problem.line for problem in listed.problems], [3])

    def test_what_stands_twice_counts_nowhere(self) -> None:
        for second in (f'roles="admin" {ED25519} bob', f'roles="view" {OTHER} ada'):
            listed = parse(f'roles="view" {ED25519} ada\n{second}\n')
            self.assertEqual(listed.keys, ())
            self.assertEqual([problem.line for problem in listed.problems], [1, 2])

    def test_find(self) -> None:
        holder = make_holder(scratch(self), "ada")
        listed = parse(holder.key.line)
        self.assertEqual(listed.find(holder.key.blob), holder.key)
        self.assertIsNone(listed.find(b""))

    def test_roles(self) -> None:
        self.assertEqual(read_roles("admin, view"), {Role.ADMIN, Role.VIEW})
        for text in ("", "view,", "View", "view;admin"):
            self.assertRaises(WrongKey, read_roles, text)
