"""Where cgroups are found; and real ones, whose limits hold for all that a program can allocate."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.process.bounded import Bounds, Finished, run
from ironcurtain.sandbox import cgroups, promises
from ironcurtain.sandbox.cgroup_places import Place, first_version, second_version
from ironcurtain.sandbox.cgroups import OwnCgroups, UserScopes, own_cgroups
from ironcurtain.sandbox.spec import MEBIBYTE, Kind, SandboxLimits

HYBRID = """\
24 20 0:21 / /sys/fs/cgroup rw - tmpfs tmpfs rw,mode=755
25 24 0:22 / /sys/fs/cgroup/cpu,cpuacct rw,relatime shared:5 - cgroup cgroup rw,cpu,cpuacct
26 24 0:23 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory
27 24 0:24 / /sys/fs/cgroup/pids\\040here rw - cgroup cgroup rw,pids
28 24 0:25 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw
"""
HYBRID_OWN = "9:memory:/user/a:b\n8:pids:/\n5:cpu,cpuacct:/x\n0::/\n"
UNIFIED = "30 23 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n"
SMALL = SandboxLimits(memory=64 * MEBIBYTE, processes=20)

ALLOCATE = """
import mmap, os, signal, sys
def fill(m):
    m[::4096] = b"x" * len(m[::4096])
    return m
way, kept = sys.argv[1], []
open("/proc/self/oom_score_adj", "w").write("1000")
for _ in range(8):
    if way == "memfd":
        fd = os.memfd_create("x")
        os.ftruncate(fd, 16 << 20)
        kept.append(fill(mmap.mmap(fd, 16 << 20)))
    elif way == "shared":
        kept.append(fill(mmap.mmap(-1, 16 << 20)))
    elif way == "file":
        with open(f"/dev/shm/x{len(kept)}", "w+b") as file:
            os.unlink(file.name)
            os.ftruncate(file.fileno(), 16 << 20)
            kept.append(fill(mmap.mmap(file.fileno(), 16 << 20)))
    else:
        reader, writer = os.pipe()
        if not os.fork():
            m = fill(mmap.mmap(-1, 16 << 20, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS))
            os.write(writer, b"x")
            signal.sigtimedwait([], 20)
            os._exit(0)
        os.close(writer)
        os.read(reader, 1)
if way != "fork" or not os.waitpid(-1, os.WNOHANG)[0]:
    print("all", flush=True)
os.killpg(0, signal.SIGKILL)
"""

FORK = """
import os, signal, time
try:
    for n in range(60):
        if not os.fork():
            time.sleep(20)
except BlockingIOError:
    print("refused", flush=True)
os.killpg(0, signal.SIGKILL)
"""


class PlacesTests(SynchronousTestCase):
    def test_first_version_has_a_directory_for_each_controller(self) -> None:
        places = first_version(HYBRID, HYBRID_OWN)
        self.assertEqual(
            [place.directory for place in places], ["/sys/fs/cgroup/memory/user/a:b", "/sys/fs/cgroup/pids here"]
        )
        values = [dict(place.values(100, 7)) for place in places]
        both = {"memory.limit_in_bytes": 100, "memory.memsw.limit_in_bytes": 100}
        self.assertEqual(values, [both, {"pids.max": 7}])

    def test_second_version_has_those_above_the_own_one(self) -> None:
        places = second_version(UNIFIED, "0::/system.slice/x.service\n")
        self.assertEqual([place.directory for place in places], ["/sys/fs/cgroup/system.slice", "/sys/fs/cgroup"])
        self.assertEqual(dict(places[0].values(100, 7)), {"memory.max": 100, "memory.swap.max": 0, "pids.max": 7})
        self.assertEqual([place.directory for place in second_version(UNIFIED, "0::/\n")], ["/sys/fs/cgroup"])

    def test_mounted_part_of_a_hierarchy_is_understood(self) -> None:
        part = "26 24 0:23 /docker/1 /cg/memory ro - cgroup cgroup rw,memory\n"
        part += "27 24 0:24 /docker/1 /cg/pids ro - cgroup cgroup rw,pids\n"
        places = first_version(part, "2:memory:/docker/1/a\n1:pids:/docker/1\n")
        self.assertEqual([place.directory for place in places], ["/cg/memory/a", "/cg/pids"])
        self.assertEqual(first_version(part, "2:memory:/other\n1:pids:/docker/1\n"), ())

    def test_nothing_is_found_where_nothing_is(self) -> None:
        for mounts, own in (("", "0::/\n"), (UNIFIED, ""), (UNIFIED, "0::/../x\n"), (HYBRID, "0::/\n")):
            self.assertEqual(first_version(mounts, own), ())
        self.assertEqual(second_version("", "0::/\n"), ())
        self.assertEqual(second_version(UNIFIED, "0::/../../x\n"), ())
        self.assertEqual(first_version(UNIFIED, "0::/a\n"), ())

    def test_cgroup_of_a_sandbox_is_known_by_its_name(self) -> None:
        for path in (f"/a/{cgroups.PREFIX}12", f"/user.slice/{cgroups.SLICE}/run-1.scope", f"/{cgroups.PREFIX}1/x"):
            self.assertTrue(cgroups.is_inside(f"4:cpu:/\n0::{path}\n"), path)
        for path in ("/", f"/{cgroups.PREFIX}", f"/x{cgroups.SLICE}", f"/{cgroups.PREFIX}1x"):
            self.assertFalse(cgroups.is_inside(f"4:memory:{path}\n0::/\n"), path)

    @given(st.text(), st.text())
    def test_any_text_is_read_without_an_error(self, mounts: str, own: str) -> None:
        for place in (*first_version(mounts, own), *second_version(mounts, own)):
            self.assertTrue(place.directory)

    @given(st.lists(st.text("abc", min_size=1, max_size=3), max_size=4))
    def test_places_are_above_the_own_one_and_below_the_mount(self, names: list[str]) -> None:
        places = second_version(UNIFIED, f"0::/{'/'.join(names)}\n")
        self.assertEqual(len(places), max(len(names), 1))
        self.assertEqual(places[-1].directory, "/sys/fs/cgroup")


class OwnTests(SynchronousTestCase):
    """Cgroups of root's, in directories that look like the kernel's, and in the kernel's."""

    def setUp(self) -> None:
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.top = Path(directory.name)

    def looks(self, swaps: bool = False) -> OwnCgroups:
        place = Place(str(self.top), memory="memory.max", swap="memory.swap.max", processes="pids.max")
        return OwnCgroups((place,), swaps)

    def test_limits_are_written_before_the_program_enters(self) -> None:
        self.assertEqual(run(self.looks().limited(["echo", "a b"], SMALL), Bounds(60)).output, b"a b\n")
        (made,) = self.top.iterdir()
        content = {path.name: path.read_text().strip() for path in made.iterdir()}
        pid = made.name.removeprefix(cgroups.PREFIX)
        self.assertEqual(content, {"memory.max": str(SMALL.memory), "pids.max": "20", "cgroup.procs": pid})

    def test_program_that_cannot_enter_does_not_start(self) -> None:
        way = replace(self.looks(), places=(Place(str(self.top / "missing" / "x\ny")),))
        (self.top / "missing").write_text("")
        done = run(way.limited(["echo", "started"], SMALL), Bounds(60))
        self.assertEqual((done.status, done.output), (cgroups.CANNOT_START, b""))
        self.assertIn(b"cannot be limited", done.errors)
        self.assertIn("no cgroup can be made", str(way.problem()))

    def test_swap_is_counted_if_there_is_any(self) -> None:
        for swaps in (False, True):
            run(self.looks(swaps).limited(["true"], SMALL), Bounds(60))
            (made,) = self.top.iterdir()
            self.assertEqual((made / "memory.swap.max").exists(), swaps)
            shutil.rmtree(made)

    def test_cgroups_of_dead_processes_are_swept(self) -> None:
        way = self.looks()
        (living := self.top / f"{cgroups.PREFIX}{os.getpid()}").mkdir()
        for name in (f"{cgroups.PREFIX}4194399", f"{cgroups.PREFIX}x", "other"):
            (self.top / name).mkdir()
        self.assertTrue(way.sweep())
        left = {path.name for path in self.top.iterdir()}
        self.assertEqual(left, {living.name, f"{cgroups.PREFIX}x", "other"})
        (self.top / f"{cgroups.PREFIX}4194399" / f"{cgroups.PREFIX}7").mkdir(parents=True)
        self.assertTrue(way.sweep())
        self.assertFalse((self.top / f"{cgroups.PREFIX}4194399").exists())
        (occupied := self.top / f"{cgroups.PREFIX}4194399").mkdir()
        (occupied / "somebody").mkdir()
        self.assertFalse(way.sweep())

    def test_cgroup_that_hands_its_controllers_on_is_chosen(self) -> None:
        mounts = f"30 23 0:26 / {self.top} rw - cgroup2 cgroup2 rw\n"
        (service := self.top / "slice" / "service").mkdir(parents=True)
        own = f"0::/{service.relative_to(self.top)}\n"
        for where, handed in ((self.top, "cpu memory pids"), (self.top / "slice", "memory pids")):
            (where / "cgroup.subtree_control").write_text(f"{handed}\n")
            way = own_cgroups(mounts, own, False)
            assert isinstance(way, OwnCgroups)
            self.assertEqual([place.directory for place in way.places], [str(where)])

    def test_uppermost_cgroup_is_asked_to_hand_them_on(self) -> None:
        mounts = f"30 23 0:26 / {self.top} rw - cgroup2 cgroup2 rw\n"
        self.assertIsInstance(own_cgroups(mounts, "0::/\n", False), OwnCgroups)
        self.assertEqual((self.top / "cgroup.subtree_control").read_text(), "+memory +pids")
        missing = mounts.replace(str(self.top), f"{self.top}/missing")
        self.assertIn("cannot be changed", str(own_cgroups(missing, "0::/a\n", False)))
        self.assertIn("no cgroups", str(own_cgroups("", "", False)))


class RealTests(SynchronousTestCase):
    """On machines without cgroups, people are told that nothing is counted."""

    def setUp(self) -> None:
        self.addCleanup(cgroups.settle)
        self.counts = cgroups.unavailable() is None
        self.assertEqual(self.counts, promises.MEMORY not in promises.unlimited(Kind.BUBBLEWRAP))

    def limited(self, *words: str) -> Finished:
        return run(["setsid", "--wait", *cgroups.limited(words, SMALL)], Bounds(60))

    def test_memory_of_each_kind_is_counted(self) -> None:
        for way in ("memfd", "shared", "file", "fork"):
            done = self.limited(sys.executable, "-I", "-c", ALLOCATE, way)
            self.assertEqual(done.output == b"", self.counts, way)
            done = run(["setsid", "--wait", sys.executable, "-I", "-c", ALLOCATE, way], Bounds(60))
            self.assertEqual(done.output, b"all\n", way)

    def test_processes_are_counted(self) -> None:
        output = self.limited(sys.executable, "-I", "-c", FORK).output
        self.assertEqual(output == b"refused\n", self.counts)

    def test_process_in_a_cgroup_of_a_sandbox_makes_no_further_one(self) -> None:
        code = "from ironcurtain.sandbox import cgroups; print(type(cgroups._tried()).__name__)"
        printed = self.limited(sys.executable, "-c", code).output
        self.assertEqual(printed == b"InheritedCgroup\n", self.counts, printed)

    def test_nothing_is_left(self) -> None:
        done, way = self.limited("sh", "-c", "echo $$"), cgroups._tried()
        self.assertEqual(done.status, 0)
        cgroups.settle()
        name, places = f"{cgroups.PREFIX}{int(done.output)}", way.places if isinstance(way, OwnCgroups) else ()
        self.assertEqual([place for place in places if Path(place.directory, name).exists()], [])


class UserScopesTests(SynchronousTestCase):
    """Another program stands for ``systemd-run``: it notes its arguments and runs what it is given."""

    def setUp(self) -> None:
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.top = Path(directory.name)
        script = f'#!/bin/sh\necho "$XDG_RUNTIME_DIR" "$@" >{self.top}/asked\nwhile test "$1" != --; do shift; done\n'
        self.program = self.top / "systemd-run"
        self.program.write_text(f'{script}shift; exec "$@"\n')
        self.program.chmod(0o755)
        self.way = UserScopes(str(self.program), "/run/user/7", str(self.top))

    def test_scope_has_the_limits_and_the_program_no_trace_of_it(self) -> None:
        words = ["/bin/sh", "-c", 'echo "${XDG_RUNTIME_DIR-none}" "$1"', "sh", "a b"]
        self.assertEqual(run(self.way.limited(words, SMALL), Bounds(60)).output, b"none a b\n")
        asked = (self.top / "asked").read_text()
        self.assertTrue(asked.startswith("/run/user/7 --user --scope "), asked)
        for word in (f"-p MemoryMax={SMALL.memory}", "-p MemorySwapMax=0", "-p TasksMax=20"):
            self.assertIn(word, asked)

    def test_scope_whose_limits_are_not_those_does_not_count(self) -> None:
        own = next(line[3:] for line in Path("/proc/self/cgroup").read_text().splitlines() if line.startswith("0::"))
        inside = self.top / own.lstrip("/")
        self.assertIn("may not limit memory", str(self.way.problem()))
        inside.mkdir(parents=True, exist_ok=True)
        for memory, works in (("max", False), (str(SandboxLimits().memory), True)):
            (inside / "memory.max").write_text(f"{memory}\n")
            (inside / "pids.max").write_text(f"{SandboxLimits().processes}\n")
            self.assertEqual(self.way.problem() is None, works)
        self.program.write_text("#!/bin/sh\necho Failed to connect to bus >&2\nexit 1\n")
        self.assertIn("does not answer", str(self.way.problem()))


class PromiseTests(SynchronousTestCase):
    def test_memory_is_promised_where_there_are_cgroups_only(self) -> None:
        for kind in (Kind.BUBBLEWRAP, Kind.LANDLOCK):
            told = any("memory of all processes" in weakness for weakness in promises.weaknesses(kind))
            self.assertEqual(told, cgroups.unavailable() is not None, kind)
            self.assertEqual(promises.MEMORY in promises.unlimited(kind), told)
        self.assertEqual(promises.unlimited(Kind.CONTAINER), ())
