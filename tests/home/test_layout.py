from __future__ import annotations

import os
import shutil
import stat
import tempfile
import threading
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.errors import ConfigurationError, UsageError
from ironcurtain.files.atomic import publish_once, write_atomically
from ironcurtain.home.layout import (
    RUN_LIMIT,
    SOCKET_PATH_LIMIT,
    Home,
    find_home,
    private_directory,
    read_configuration,
    socket_path,
)
from ironcurtain.home.user_paths import person_home
from tests.machine import UID


class FindTests(SynchronousTestCase):
    def test_which_home(self) -> None:
        self.assertEqual(find_home({"HOME": "/usr"}, 7).path, Path("/usr/.ironcurtain"))
        self.assertEqual(find_home({"HOME": "/h", "IRONCURTAIN_HOME": "/x/../y/"}, 7).path, Path("/y"))
        self.assertEqual(find_home({"HOME": "/usr", "IRONCURTAIN_HOME": ""}, 7).path, Path("/usr/.ironcurtain"))
        self.assertTrue(find_home({"IRONCURTAIN_HOME": "relative"}, 7).path.is_absolute())
        self.assertRaises(UsageError, find_home, {}, 7)

    def test_home_that_no_shell_expanded_is_refused_with_what_is_meant(self) -> None:
        for chosen in ("~/ic", "$HOME/ic", "${HOME}/ic"):
            refused = self.assertRaises(UsageError, find_home, {"HOME": "/h", "IRONCURTAIN_HOME": chosen}, 7)
            self.assertIn("which no shell has expanded: write /h/ic", str(refused))
        for chosen in ("$XDG_STATE_HOME/ic", "~nobody-has-this-name/ic", os.fsdecode(b"/caf\xe9")):
            self.assertRaises(UsageError, find_home, {"HOME": "/h", "IRONCURTAIN_HOME": chosen}, 7)

    def test_home_of_an_account_without_one_is_not_made(self) -> None:
        for home in ("/nonexistent", "/dev/null", "relative", "~", os.fsdecode(b"/caf\xe9")):
            self.assertRaises(UsageError, find_home, {"HOME": home}, 7)
        advised = self.assertRaises(UsageError, find_home, {"HOME": "/nonexistent"}, 7)
        self.assertIn("HOME is /nonexistent, which does not exist: set IRONCURTAIN_HOME", str(advised))

    def test_home_of_another_login_is_named(self) -> None:
        own = Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, own)
        self.assertEqual(person_home({"HOME": str(own)}, 7), str(own))
        own.chmod(0)
        self.addCleanup(own.chmod, 0o700)
        if os.geteuid() == 0:  # root may enter every directory
            self.addCleanup(os.seteuid, 0)
            os.seteuid(65534)
        refused = self.assertRaises(UsageError, person_home, {"HOME": str(own)}, 7)
        self.assertIn(f"HOME is {own}, which this account may not enter: set HOME to its own", str(refused))

    def test_persons_home_need_not_exist(self) -> None:
        for home in ("/nonexistent", "/dev/null"):
            self.assertEqual(person_home({"HOME": home}, 7), home)

    def test_a_home_that_cannot_be_reached_is_refused(self) -> None:
        refused = self.assertRaises(UsageError, find_home, {"IRONCURTAIN_HOME": f"/{'x' * 300}/home"}, 7)
        self.assertIn("cannot be used: File name too long", str(refused))

    def test_where_sockets_go(self) -> None:
        short = find_home({"IRONCURTAIN_HOME": "/h"}, 7)
        self.assertEqual(short.run, Path("/h/run"))
        long = {"IRONCURTAIN_HOME": "/h" + "x" * RUN_LIMIT}
        self.assertRegex(str(find_home(long, 7).run), r"^/tmp/ironcurtain-7-[0-9a-f]{8}$")
        own = Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, own)
        found = find_home({**long, "XDG_RUNTIME_DIR": str(own)}, os.geteuid()).run
        self.assertRegex(str(found.relative_to(own)), r"^ironcurtain-[0-9a-f]{8}$")
        self.assertNotEqual(find_home(long, 7).run, find_home({"IRONCURTAIN_HOME": "/i" + "x" * RUN_LIMIT}, 7).run)

    def test_sockets_go_to_tmp_where_the_runtime_directory_cannot_be_used(self) -> None:
        own = Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, own)
        (own / "file").touch()
        deep = own / ("d" * RUN_LIMIT)
        deep.mkdir()
        for base, uid in (
            (own / "missing", os.geteuid()),
            (own / "file", os.geteuid()),
            (own / "file" / "below", os.geteuid()),
            (own, os.geteuid() + 1),
            (deep, os.geteuid()),
            ("relative", os.geteuid()),
            ("~/run", os.geteuid()),
            (os.fsdecode(b"/caf\xe9"), os.geteuid()),
            ("", os.geteuid()),
        ):
            environ = {"IRONCURTAIN_HOME": "/h" + "x" * RUN_LIMIT, "XDG_RUNTIME_DIR": str(base)}
            self.assertRegex(str(find_home(environ, uid).run), rf"^/tmp/ironcurtain-{uid}-[0-9a-f]{{8}}$", base)

    def test_the_limit_is_in_bytes(self) -> None:
        home = find_home({"IRONCURTAIN_HOME": "/" + "ä" * 29}, 7)
        self.assertEqual(home.run, home.runtime)
        self.assertRaises(UsageError, socket_path, Path("/" + "ä" * 52))
        self.assertEqual(len(socket_path(Path("/" + "x" * (SOCKET_PATH_LIMIT - 1)))), SOCKET_PATH_LIMIT)


class FilesTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.directory = Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.directory)
        self.path = self.directory / "file"

    def mode(self, path: Path) -> int:
        return stat.S_IMODE(path.lstat().st_mode)

    def test_every_directory_is_private(self) -> None:
        self.addCleanup(os.umask, os.umask(0))
        home = Home(self.directory / "h", self.directory / "r")
        home.prepare()
        home.prepare()
        made = [home.path, *home.path.iterdir(), *([home.run] if home.run.exists() else [])]
        self.assertEqual({path: oct(self.mode(path)) for path in made}, dict.fromkeys(made, "0o700"))
        self.assertTrue(home.sessions.is_dir() and home.registry.is_dir() and home.logs.is_dir())

    def test_one_that_this_account_may_not_make_is_named_with_the_way_out(self) -> None:
        reader, writer = os.pipe()
        if not (pid := os.fork()):
            try:
                if os.geteuid() == 0:
                    os.setgroups([])
                    os.setresgid(UID, UID, UID)
                    os.setresuid(UID, UID, UID)
                private_directory(Path("/usr/share/.ironcurtain/sessions"))
            except UsageError as e:
                os.write(writer, str(e).encode())
            finally:
                os._exit(0)
        os.waitpid(pid, 0)
        os.close(writer)
        with open(reader, encoding="utf-8") as said:
            words = "/usr/share/.ironcurtain/sessions cannot be made: Permission denied: set IRONCURTAIN_HOME to a"
            self.assertIn(words, said.read())

    def test_one_that_is_too_open_is_closed(self) -> None:
        self.path.mkdir(mode=0o755)
        private_directory(self.path)
        self.assertEqual(self.mode(self.path), 0o700)

    def test_links_files_and_foreign_directories_are_refused(self) -> None:
        (self.directory / "target").mkdir()
        link = self.directory / "link"
        link.symlink_to("target")
        self.path.touch()
        for path in (link, self.path):
            self.assertRaises(UsageError, private_directory, path)
        if os.geteuid() == 0:
            foreign = self.directory / "foreign"
            foreign.mkdir()
            os.chown(foreign, 65534, 65534)
            self.assertRaises(UsageError, private_directory, foreign)

    def test_what_the_user_wrote(self) -> None:
        path = self.directory / "config.toml"
        self.assertIsNone(read_configuration(path))
        path.write_bytes(b"x = 1\n")
        self.assertEqual(read_configuration(path), "x = 1\n")
        path.write_bytes(b"\xff")
        self.assertRaises(ConfigurationError, read_configuration, path)
        path.unlink()
        path.mkdir()
        self.assertRaises(ConfigurationError, read_configuration, path)
        path.rmdir()
        os.mkfifo(path)
        self.assertRaises(ConfigurationError, read_configuration, path)

    def test_replaced_as_a_whole(self) -> None:
        self.addCleanup(os.umask, os.umask(0))
        write_atomically(self.path, b"one")
        with self.path.open("rb") as before:
            write_atomically(self.path, b"two")
            self.assertEqual((before.read(), self.path.read_bytes()), (b"one", b"two"))
        self.assertEqual((os.listdir(self.directory), self.mode(self.path)), (["file"], 0o600))

    def test_a_failure_leaves_nothing(self) -> None:
        (self.directory / "full").mkdir()
        (self.directory / "full" / "x").touch()
        self.assertRaises(OSError, write_atomically, self.directory / "full", b"data")
        self.assertEqual(os.listdir(self.directory), ["full"])

    def test_published_once(self) -> None:
        self.assertTrue(publish_once(self.path, b"one"))
        self.assertFalse(publish_once(self.path, b"two"))
        self.assertEqual((self.path.read_bytes(), os.listdir(self.directory)), (b"one", ["file"]))
        self.assertEqual(self.mode(self.path), 0o600)
        dangling = self.directory / "dangling"
        dangling.symlink_to(self.directory / "elsewhere")
        self.assertFalse(publish_once(dangling, b"x"))
        self.assertFalse((self.directory / "elsewhere").exists())

    def test_of_many_at_once_one_wins(self) -> None:
        won: list[int] = []
        begin = threading.Barrier(8)

        def publish(number: int) -> None:
            begin.wait()
            if publish_once(self.path, b"%d" % number):
                won.append(number)

        threads = [threading.Thread(target=publish, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual([self.path.read_bytes()], [b"%d" % number for number in won])
