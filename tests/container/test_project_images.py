from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from twisted.internet.defer import Deferred

from ironcurtain.container.build_advice import NO_NETWORK
from ironcurtain.container.dockerfiles import read_needs
from ironcurtain.container.image_builder import Builder, BuildFailed
from ironcurtain.container.image_plans import Basis, Recipe
from ironcurtain.container.images import MISSING, PROJECTS
from tests import engine as test_engine
from tests.container.test_images import ImageCase


class ProjectImageTests(ImageCase):
    def setUp(self) -> None:
        """Make a project."""
        super().setUp()
        self.project = Path(tempfile.mkdtemp(prefix="ic-")).resolve()
        self.addCleanup(shutil.rmtree, self.project, ignore_errors=True)

    def basis(self, dockerfile: str, **files: bytes) -> Basis:
        """:returns: what an image stands on that a project's Dockerfile describes."""
        text = dockerfile.replace("IMAGE", test_engine.image())
        recipe = Recipe("Dockerfile", {"Dockerfile": text.encode(), **files}, read_needs(text), "none")
        return Basis(recipe=recipe, project=str(self.project))

    async def test_an_agents_image_stands_on_what_the_dockerfile_describes(self) -> None:
        basis = self.basis(
            "FROM IMAGE AS tools\nRUN echo made >/made\nFROM IMAGE\nCOPY --from=tools /made /x/\nCOPY data /x/\n",
            data=b"1",
        )
        reference = await self.images().ensure("toy", self.said.append, basis)
        container = await self.running(image=reference)
        self.assertEqual((await self.sh(container, "cat /x/made /x/data /toy")).out, "made\n1toy@1.0\n")
        self.assertEqual(self.leftovers(), [])
        self.said.clear()
        self.assertEqual(await self.images().ensure("toy", self.said.append, basis), reference)
        self.assertEqual(self.said, [])

    async def test_other_files_make_another_image(self) -> None:
        first = await self.images().ensure("toy", self.said.append, self.basis("FROM IMAGE\nCOPY a /a\n", a=b"1"))
        second = await self.images().ensure("toy", self.said.append, self.basis("FROM IMAGE\nCOPY a /a\n", a=b"2"))
        self.assertNotEqual(first, second)

    async def test_images_behind_variables_and_of_copied_files_count(self) -> None:
        builder, tag = Builder(self.engine, self.choices()), f"{self.prefix}varied:1"
        for dockerfile in ("ARG X=VARIED\nFROM ${X}\n", "FROM IMAGE\nCOPY --from=VARIED /mark /mark\n"):
            built = set()
            for content in (b"1", b"2"):
                files = {"Dockerfile": f"FROM {test_engine.image()}\nCOPY mark /mark\n".encode(), "mark": content}
                await builder.run("varied", tag, files, {}, {}, self.said.append)
                basis = self.basis(dockerfile.replace("VARIED", tag))
                built.add(await self.images().ensure("toy", self.said.append, basis))
            self.assertEqual(len(built), 2, dockerfile)

    async def test_steps_have_no_network(self) -> None:
        basis = self.basis("FROM IMAGE\nRUN ls /sys/class/net | grep -v lo >/net; ip addr >>/net; true\n")
        container = await self.running(image=await self.images().ensure("toy", self.said.append, basis))
        self.assertNotIn("eth", (await self.sh(container, "cat /net")).out)

    async def test_nothing_that_waits_for_the_next_build_runs_there(self) -> None:
        """That one can have a network."""
        basis = self.basis("FROM IMAGE\nONBUILD RUN ls /sys/class/net >/net\n")
        failed = await self.assertFailure(
            Deferred.fromCoroutine(self.images().ensure("toy", self.said.append, basis)), BuildFailed
        )
        self.assertIn("ONBUILD", str(failed))

    async def test_a_step_that_fails_is_shown(self) -> None:
        basis = self.basis("FROM IMAGE\nRUN echo no such tool; exit 3\n")
        failed = await self.assertFailure(
            Deferred.fromCoroutine(self.images().ensure("toy", self.said.append, basis)), BuildFailed
        )
        self.assertIn("Dockerfile could not be built: The command", str(failed))
        self.assertIn("no such tool", str(failed))

    async def test_a_step_that_lacks_a_network_is_told_how_to_get_one(self) -> None:
        much = "for i in $(seq 100); do echo $i; done; exit 1"  # more than is shown
        basis = self.basis(f"FROM IMAGE\nRUN wget http://example.com/ || {{ {much}; }}\n")
        failed = await self.assertFailure(
            Deferred.fromCoroutine(self.images().ensure("toy", self.said.append, basis)), BuildFailed
        )
        self.assertTrue(str(failed).endswith(f"\n{NO_NETWORK}"), str(failed))

    async def test_a_text_that_names_no_image_is_refused(self) -> None:
        failed = await self.assertFailure(
            Deferred.fromCoroutine(self.images().ensure("toy", self.said.append, Basis("No Such/Base"))), BuildFailed
        )
        self.assertIn("the image No Such/Base could not be found", str(failed))

    async def test_images_of_a_project_are_listed_and_go_with_it(self) -> None:
        old = await self.images().ensure("toy", self.said.append, self.basis("FROM IMAGE\nCOPY a /a\n", a=b"1"))
        new = await self.images().ensure("toy", self.said.append, self.basis("FROM IMAGE\nCOPY a /a\n", a=b"2"))
        states = {(image.state, image.reference) for image in await self.images().states() if image.agent == "toy"}
        self.assertEqual(states, {(MISSING, ""), (PROJECTS, old), (PROJECTS, new)})
        await self.images().prune()
        self.assertIn(new, self.names())
        self.assertNotIn(old, self.names())
        shutil.rmtree(self.project)
        await self.images().prune()
        self.assertNotIn(new, self.names())
