"""The installed product on a desktop: an agent writes a letter in the editor, and one question is asked."""

from __future__ import annotations

import json
import os
import pwd
import sys

from ironcurtain.mcp_proxy.launch import OWN_SERVERS
from tests.cli.cases import ProductCase
from tests.desktop.desktops import XDesktop
from tests.product import until

POLICY = """
version = 1

[approval.vision]
mode = "allow"

[[rules]]
name = "start-programs"
if = { server = ["desktop"], tool = ["open"] }
then = "escalate"
reason = "this starts a program"

[[rules]]
name = "editor"
if = { server = ["desktop"], lists = [{ roles = ["app"], allowed = ["mousepad"], matchType = "identifiers" }] }
then = "allow"
"""

SENTENCE = "The calendar begins on Monday."

PROGRAM = """
import json
import time

def elements(depth=6):
    return [e for e in json.loads(desktop.tree(app="mousepad", depth=depth))["elements"] if "states" in e]

def find(role, name="", depth=6):
    for tried in range(18):  # the same call is refused after 20 times
        try:
            found = [e for e in elements(depth) if e["role"] == role and e["name"].endswith(name)]
        except Exception:  # it is not there yet, or busy
            found = []
        found = [e for e in found if "showing" in e["states"]]
        if found:
            return found[0]
        time.sleep(0.2 * 1.3 ** tried)
    raise RuntimeError(f"no {role} {name}")

def on(e):
    return {"app": "mousepad", "ref": e["ref"], "role": e["role"], "name": e["name"]}

desktop.open(app="mousepad")
text = find("text")
window = json.loads(desktop.windows(app="mousepad"))[0]
desktop.set_value(**on(text), value=SENTENCE)
desktop.key(app="mousepad", window=window["window"], keys="Ctrl+s")
find("file chooser")
named = [e for e in elements() if e["role"] == "text" and e["ref"] != text["ref"]]
desktop.set_value(**on(named[0]), value=FILE)
desktop.press(**on(find("push button", "Save")))
find("frame", "letter.txt - Mousepad", 1)
print(json.dumps([e["value"] for e in elements() if e["role"] == "text" and "value" in e]))
"""


class LetterTests(ProductCase):
    def test_letter_is_written_saved_and_read_back_with_one_approval(self) -> None:
        desktop = XDesktop()
        self.addCleanup(desktop.close)
        letter = self.product.person / "letter.txt"
        self.product.home.mkdir(mode=0o700)
        (self.product.home / "policy.toml").write_text(POLICY)
        account = pwd.getpwuid(os.geteuid()).pw_name
        (self.product.home / "config.toml").write_text(f'version = 1\nrun_as = "{account}"\n')
        server = {"command": sys.executable, "args": list(OWN_SERVERS[2])}
        (self.product.home / "mcp-servers.json").write_text(json.dumps({"mcpServers": {"desktop": server}}))
        names = ("DISPLAY", "DBUS_SESSION_BUS_ADDRESS", "XDG_RUNTIME_DIR", "IRONCURTAIN_TEST_DESKTOP")
        self.product.environ |= {name: desktop.environ[name] for name in names}
        program = PROGRAM.replace("SENTENCE", repr(SENTENCE)).replace("FILE", repr(str(letter)))
        read = {"expect": {"last_result_contains": SENTENCE}, "text": f"It says: {SENTENCE}"}
        process = self.product.start("start", "--backend", self.product.script({"code": program}, read))
        assert process.stdin is not None
        process.stdin.write("open the editor, write a sentence, save it as letter.txt, read it back to me\n")
        process.stdin.flush()
        until(process.stderr, "/approve 1")
        self.assertIn("mousepad", self.product.run("escalations", "show", "1").stdout)
        done = self.product.run("approve", "1")
        self.assertEqual(done.stdout, "Approved: desktop.open in session 1.\n", done.stderr)
        out, err = process.communicate("/quit\n")
        self.assertEqual((process.returncode, out.count(f"It says: {SENTENCE}")), (0, 1), err)
        self.assertEqual(letter.read_text(), SENTENCE)
        kinds = [record["kind"] for record in self.product.audit()]
        self.assertEqual(kinds.count("decision"), 1)


class DoctorTests(ProductCase):
    def test_without_a_desktop_each_sense_says_what_it_lacks(self) -> None:
        findings = {each["what"]: each for each in json.loads(self.product.run("doctor", "--json").stdout)}
        lines = [each for what, each in findings.items() if what.startswith("desktop: ")]
        self.assertEqual(len(lines), 12)
        self.assertEqual({each["state"] for each in lines}, {"ok"})
        why = "unsupported: there is no desktop: neither DISPLAY nor WAYLAND_DISPLAY is set"
        self.assertEqual(findings["desktop: windows"]["detail"], why)
        self.assertEqual([each["what"] for each in lines if not each["detail"].startswith("unsupported: ")], [])
