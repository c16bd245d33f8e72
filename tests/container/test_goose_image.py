"""The image of goose, of which no release can be shipped by its checksum: built with a stand-in for the downloader."""

from __future__ import annotations

from ironcurtain.container.image_choices import shipped_folders
from ironcurtain.container.image_plans import Recipes
from ironcurtain.container.versions import ImageProgram
from tests.base_image import base_image
from tests.container.test_images import SUM, ImageCase

DOWNLOADER = b"ARG BASE\nFROM ${BASE}\nCOPY certificates.pem /certificates.pem\nCOPY download /bin/download\n"
DOWNLOAD = b"""#!/bin/sh
mkdir "$3" && printf '#!/bin/sh\\necho %s %s\\n' "$1" "$2" >"$3/goose" && chmod +x "$3/goose"
"""


class GooseTests(ImageCase):
    async def test_its_folder_makes_an_image_with_the_chosen_release(self) -> None:
        folders = {
            "base": self.recipes.folders["base"],
            "downloader": {"Dockerfile": DOWNLOADER, "download": DOWNLOAD},
            "goose": shipped_folders()["goose"],
        }
        chosen = ImageProgram("goose", "8.0", "", {"any": "https://x.test/{version}"}, {"any": SUM})
        recipes = Recipes(folders, {"base": self.recipes.programs["base"], "goose": chosen}, self.prefix)
        reference = await self.images(recipes, source=base_image()).ensure("goose", self.said.append)
        container = await self.running(image=reference)
        said = await self.sh(container, "goose")
        self.assertEqual((said.status, said.out), (0, f"https://x.test/8.0 {SUM}\n"))
