"""Two sessions at once, neither of which finds anything of the other."""

from __future__ import annotations

from collections.abc import Callable

from ironcurtain.container.image_plans import Basis
from ironcurtain.session.session import Session
from tests import engine
from tests.container_agent.worlds import ContainerTestCase, SmallImages, World

PLACES = "~ /tmp /workspace /dev/shm"

ADDRESSES = '(("127.0.0.1", 7777), chr(0) + "theirs", "/tmp/theirs")'
"""Of TCP, of a socket without a file, and of one with."""

LISTEN = f"""
import socket, time
for address in {ADDRESSES}:
    kept = socket.socket(socket.AF_UNIX if isinstance(address, str) else socket.AF_INET)
    kept.bind(address)
    kept.listen()
    globals()[str(address)] = kept
open("/tmp/listening", "w").close()
time.sleep(77777)
"""

CONNECT = f"""
import socket
print([socket.socket(socket.AF_UNIX if isinstance(address, str) else socket.AF_INET).connect_ex(address)
    for address in {ADDRESSES}].count(0))
"""

PLANT = f"""
for place in {PLACES}; do echo theirs >$place/file; done
python3 -c '{LISTEN}' >/dev/null 2>&1 &
until test -e /tmp/listening; do sleep 0.05; done
"""
"""Leaves a file in each place where an agent can write, and a process that listens on three sockets."""

LOOK = f"""
for place in {PLACES}; do cat $place/file 2>/dev/null; done | grep -c theirs
cat /proc/[0-9]*/cmdline | tr '\\0' ' ' | grep -ac 'sleep(77[7]77)'
python3 -c '{CONNECT}'
"""
"""Prints the numbers of these files, processes and sockets that are found."""

KEY = 'printf %s "$AGENT_KEY" | rev'
"""Prints the fake key, in a form in which it is not redacted."""


class PythonImages(SmallImages):
    """Images with Python, the same as those of other tests."""

    async def ensure(self, agent: str, progress: Callable[[str], None], basis: Basis) -> str:
        """:returns: the image."""
        return engine.image("python3", "socat")


class PythonWorld(World):
    """One whose sessions have Python."""

    images_class = PythonImages


class ApartCase(ContainerTestCase):
    world_class = PythonWorld

    async def assert_apart(self, first: Session, second: Session) -> None:
        """The second session finds no file, process, socket, mount or key of the first."""
        await self.say(first, PLANT)
        self.assertEqual(await self.say(first, LOOK), "4\n1\n3\n")
        self.assertEqual(await self.say(second, LOOK), "0\n0\n0\n")
        self.assertNotEqual(await self.say(first, KEY), await self.say(second, KEY))
        mounts = await self.say(second, "cat /proc/self/mountinfo")
        self.assertIn(second.id, mounts)
        self.assertNotIn(first.id, mounts)
