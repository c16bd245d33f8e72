"""Commands that write files which their text does not name: out of archives, with directories, by patches, by git."""

from __future__ import annotations

import itertools
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.command_rules import Risk
from ironcurtain.policy.verdict import Decision, Reversal, Verdict
from ironcurtain.shell.approval import read_approval
from ironcurtain.shell.categories import category_of
from ironcurtain.shell.gate import CommandGate
from ironcurtain.shell.messages import ProposedStep
from ironcurtain.shell.tools import JudgedStep
from tests.shell.test_gate import HERE, HOME


def commands(text: str) -> list[str]:
    """:returns: what stands between commas."""
    return [each.strip() for each in text.replace("\n", " ").split(",")]


UNPACK = commands(
    """
    unzip -dplace a.zip, unzip -o -dl a.zip, 7z -y x a.7z, rar -y e a.rar, busybox tar xf a.tar, tar xOf a,
    cpio -pd sub, ditto -x a b, lha e a,
    tar xf a.tar, tar -xf a.tar, tar zxvf a.tar, tar --extract -f a.tar, tar --get -f a, tar -f a.tar,
    tar xf a.tar --strip-components=1, bsdtar -xf a.zip, unzip a.zip, unzip -o a.zip, unzip -qq a, cpio -i,
    cpio -id -I a, cpio --extract, cpio -idmv, pax -r -f a, pax -rf a, 7z x a.7z, 7za e a, unrar x a.rar, ar x a.a,
    jar xf a.jar, jar --extract --file a.jar, unsquashfs a, dpkg-deb -x a.deb ., dpkg-deb --extract a.deb .,
    cabextract a, patch -p1, patch a a.patch, patch -i a.patch, lha x a, nice tar xf a.tar, sh -c 'tar xf a.tar',
    cd . && unzip a.zip, tar --ext --exclude -c -f a.tar, tar --ge --directory=sub -f a.tar, unzip a.zip -v '*',
    unzip --l a, unzip -l --l a, unzip -o --v a, unzip -l-l a, unzip a -x -l, unzip -P -l a, unzip -d -l a, 7z X a,
    unrar X a, rar E a, cpio -t --pass sub, cpio -t --ext
    """
)
"""What unpacks, here."""

FILL = commands(
    """
    cp -r src ., cp -a src/. ., cp -r src sub, cp -rt sub src, rsync -a src/ sub, rsync -a src .
    """
)
"""What brings whole directories along."""

OTHERS = commands(
    """
    tar cf a.tar src, tar -cfx.tar src, tar tf a.tar, tar --list -f a.tar, tar -tzvf a.tgz, unzip -l a.zip,
    unzip -p a.zip x, zip -r a.zip src, gzip a, gunzip a.gz, 7z a a.7z src, 7z l a.7z, unrar l a, ar t a, cp a b,
    cp a src, cp a b src, mv a b, mv a src, install -D a src/b, install -t src a b, ln -s a b, git checkout main,
    git apply a.patch, git merge x, git stash pop, jar tf a.jar, dpkg-deb -c a.deb
    """
)
"""What names all that it writes, or is git."""

HIDES = commands(
    """
    gtar tf a --to-command=sh, gtar tf a -I sh, gtar cIf sh a src, gtar cf a --checkpoint-action=exec=sh src,
    bsdtar -W use-compress-program=sh -tf a, bsdtar -cWf use-compress-program=sh a src, bsdtar -cf a -I list,
    ar --plugin=x.so t a, ar --plugin x.so t a, ar @list, ar -M, jar @list, jar -J-javaagent:x.jar tf a,
    xz -d --files=list, xz --files0, unxz --files=list, zstd -d --filelist=list, zip -r@ a, 7z a a @list,
    7z a a -i@list, 7z a a -ir@list, cpio -t --rsh-command=sh -F h:a, cpio -to -O x, cpio -t --create -O x
    """
)
"""What runs a program, or takes arguments that its text does not show, behind an option."""

PROGRAMS = sorted(
    {word for line in (*UNPACK, *FILL, *OTHERS, *HIDES) for word in line.split() if word.isalnum()} | {"dpkg-deb"}
)

BELOW = UNPACK + commands(
    """
    cp -rT /tmp/x ., cp --target-directory=. /tmp/.env, mv --target-directory . /tmp/.env,
    ln -sf /tmp/.env, rsync /tmp/.env .,
    cp -a /tmp/x/. ., rsync -a /tmp/x/ ., scp -r h:x ., cp /tmp/.env ., cp -t . /tmp/.env, mv /tmp/.env .,
    mv -t . a /tmp/.env, ln -s /tmp/.env, mv /tmp/secrets ., mv /tmp/secrets/ ., install /tmp/.env .,
    install -D /tmp/.env ../project, curl -O http://h/.env, wget http://h/.env, wget -r http://h/, wget -m http://h/,
    cp /tmp/.en? ., cp /tmp/* ., mv src/* ., git checkout main, git checkout ., git switch main, git restore .,
    git merge x, git pull, git stash, git reset --hard, git clean -fdx, git apply x.patch, git am x, git rebase x,
    git cherry-pick x, git checkout -- ., git revert x, git stash pop, gunzip -N a.gz, gzip -dr .,
    tar xf a.tar -C .., unzip a.zip -d .., cp -r project .., mv /tmp/project .., gzip -d --na a.gz, gunzip --re .,
    cp --parents /tmp/secrets/x ., cp --pa /tmp/secrets/x -t ., curl -OJ http://h/x,
    curl -O --remote-header-name http://h/x,
    curl -o '#1' http://h/[e-e]nv, curl -O http://h/.[e-e]nv, wget --content-disposition http://h/x
    """
)
"""What may write a denied file here."""

BESIDE = commands(
    """
    cp a b, cp a ., cp -r src lib, mv a ., mv src lib, mv a b lib, install a ., ln -s ../a b, ln -s ../a,
    git checkout -- a, git restore -- src a, git add a, git mv a b, git commit -m x, curl -O http://h/a,
    wget http://h/a, cp /tmp/env ., cp -r /tmp/.env src, rsync -a /tmp/x lib, gunzip a.gz, tar cf a.tar src
    """
)
"""What cannot."""


def gate(protected: tuple[str, ...] = (), **tables: Any) -> CommandGate:
    """:returns: one that allows all programs, and writes of what is not hidden."""
    patterns = [f"{name} *" for name in PROGRAMS]
    known = {"default": "ask", "shell": {"allow_patterns": patterns}, "network": {"allow_hosts": ["h"]}, **tables}
    known.setdefault("filesystem", {"write": ["$CWD/**"], "read": ["/**"]})
    return CommandGate(read_approval(known, "test", HOME), protected, HOME, lambda path: path, HERE)


def judged(command: str, **tables: Any) -> Verdict:
    return gate(**tables).judged(command, HERE)


class UnpackTests(SynchronousTestCase):
    """No table allows what the text does not show; only one that has the whole command."""

    def test_what_unpacks_is_asked_about(self) -> None:
        for command in UNPACK:
            verdict = judged(command)
            self.assertEqual(verdict.decision, Decision.ESCALATE, command)
            self.assertIn("structural-unseen", verdict.asking, command)

    def test_also_where_everything_is_allowed(self) -> None:
        for command in UNPACK:
            verdict = judged(command, default="allow", shell={}, filesystem={}, network={})
            self.assertEqual((verdict.decision, verdict.rule), (Decision.ESCALATE, "structural-unseen"), command)
            self.assertIn("is not in its text", verdict.reason)

    def test_a_pattern_that_has_the_whole_command_allows_it(self) -> None:
        for command in UNPACK[:22]:
            self.assertEqual(judged(command, shell={"allow_patterns": [command]}).decision, Decision.ALLOW, command)

    def test_what_hides_more_behind_an_option_is_asked_about(self) -> None:
        for command in HIDES:
            verdict = judged(command)
            self.assertEqual(verdict.decision, Decision.ESCALATE, command)
            self.assertIn("unknown-command", verdict.asking, command)

    def test_what_brings_directories_along_is_asked_about_for_what_is_hidden_in_them(self) -> None:
        for command in FILL:
            verdict = judged(command)
            self.assertEqual(verdict.decision, Decision.ESCALATE, command)
            self.assertIn("hidden ones may be there", verdict.reason, command)
            self.assertEqual(judged(command, default="allow", filesystem={}).decision, Decision.ALLOW, command)

    def test_what_names_its_files_is_not(self) -> None:
        for command in OTHERS:
            self.assertEqual(judged(command).decision, Decision.ALLOW, command)

    def test_it_is_in_no_category_and_cannot_be_undone_for_certain(self) -> None:
        for command in UNPACK + FILL:
            verdict = judged(command, shell={})
            step = JudgedStep(ProposedStep(number=1, command=command), verdict, Risk.WRITE_INSIDE)
            self.assertIsNone(category_of(step), command)
        for command in UNPACK:
            self.assertEqual(judged(command).reversal, Reversal.UNKNOWN, command)


class BelowTests(SynchronousTestCase):
    """Denied and protected files below, or in the place, of what is written."""

    DENY = ("$CWD/.env", "$CWD/secrets/**")

    def test_what_may_write_a_denied_file_is_asked_about(self) -> None:
        for command in BELOW:
            verdict = judged(command, default="allow", filesystem={"deny": list(self.DENY)}, network={})
            self.assertEqual(verdict.decision, Decision.ESCALATE, command)
            self.assertIn("approval.filesystem.deny", verdict.asking, command)

    def test_what_cannot_is_not(self) -> None:
        for command in BESIDE:
            verdict = judged(command, default="allow", filesystem={"deny": list(self.DENY)}, network={})
            self.assertEqual(verdict.decision, Decision.ALLOW, (command, verdict.reason))

    def test_a_protected_directory_below_is_seen(self) -> None:
        protected = (f"{HOME}/.ironcurtain",)
        asked = ("tar xf a.tar -C ~", "unzip a -d ~", "cp -r x/. ~", "mv /tmp/.ironcurtain ~", "cp /tmp/.ironcurtain ~")
        for command, cd in itertools.product(asked, ("", "cd ..; ")):
            verdict = gate(protected, default="allow", filesystem={}).judged(cd + command, HERE)
            self.assertIn("structural-protected-path", verdict.asking, command)
        self.assertEqual(
            gate(protected, default="allow", filesystem={}).judged("cp -r src lib", HERE).decision, Decision.ALLOW
        )
