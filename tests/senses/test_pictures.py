from __future__ import annotations

import contextlib
import io

from hypothesis import given
from hypothesis import strategies as st
from PIL import Image
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.errors import UsageError
from ironcurtain.senses.model import Box, Mark, Picture
from ironcurtain.senses.pictures import READ_LIMIT, make_picture, prepare_for_reading
from ironcurtain.senses.wire import MakePicture, ReadText
from tests.senses.pictures import chunk, plain, png

NUMBERS = st.integers(-(2**70), 2**70)
SIZES = st.integers(0, 2**70)
BOXES = st.builds(Box, NUMBERS, NUMBERS, SIZES, SIZES)


def pixels(picture: Picture) -> Image.Image:
    opened = Image.open(io.BytesIO(picture.png))
    assert opened.size == (picture.width, picture.height)
    return opened.convert("RGB")


class PictureTests(SynchronousTestCase):
    def test_large_picture_is_scaled_to_the_longest_side(self) -> None:
        made = make_picture(MakePicture(longest=100), plain(400, 200))
        self.assertEqual((made.width, made.height, made.scale), (100, 50, 0.25))

    def test_small_picture_keeps_its_size(self) -> None:
        made = make_picture(MakePicture(), plain(40, 20))
        self.assertEqual((made.width, made.height, made.scale), (40, 20, 1.0))

    def test_hidden_box_is_black_and_the_rest_is_not(self) -> None:
        made = pixels(make_picture(MakePicture(hidden=(Box(10, 10, 5, 5),)), plain(40, 20)))
        self.assertEqual(made.getpixel((12, 12)), (0, 0, 0))
        self.assertEqual(made.getpixel((9, 9)), (255, 255, 255))

    def test_hidden_box_stays_black_in_a_region_of_it(self) -> None:
        order = MakePicture(region=Box(12, 12, 20, 20), hidden=(Box(10, 10, 5, 5),))
        made = pixels(make_picture(order, plain(40, 40)))
        self.assertEqual(made.getpixel((0, 0)), (0, 0, 0))
        self.assertEqual(made.getpixel((10, 10)), (255, 255, 255))

    def test_mark_is_drawn_round_its_box_in_the_scaled_region(self) -> None:
        order = MakePicture(region=Box(100, 100, 200, 200), marks=(Mark("7", Box(150, 150, 100, 100)),), longest=100)
        made = pixels(make_picture(order, plain(400, 400)))
        self.assertNotEqual(made.getpixel((25, 60)), (255, 255, 255))
        self.assertEqual(made.getpixel((20, 60)), (255, 255, 255))

    def test_region_outside_is_refused(self) -> None:
        for region in (Box(40, 0, 5, 5), Box(-5, 0, 5, 5), Box(0, 0, 0, 5)):
            with self.assertRaisesRegex(UsageError, "outside"):
                make_picture(MakePicture(region=region), plain(40, 20))

    def test_what_is_written_beside_the_pixels_does_not_come_through(self) -> None:
        file = plain(8, 8).replace(chunk(b"IEND", b""), chunk(b"tEXt", b"Comment\0hunter2") + chunk(b"IEND", b""))
        self.assertIn(b"hunter2", file)
        self.assertNotIn(b"hunter2", make_picture(MakePicture(), file).png)

    @given(BOXES | st.none(), st.lists(BOXES, max_size=3), st.lists(BOXES, max_size=3))
    def test_boxes_of_any_numbers_do_no_harm(self, region: Box | None, hidden: list[Box], marked: list[Box]) -> None:
        order = MakePicture(region, tuple(hidden), tuple(Mark("1", box) for box in marked), 16)
        with contextlib.suppress(UsageError):
            made = make_picture(order, plain(32, 24))
            self.assertLessEqual(max(made.width, made.height), 16)


class HostileTests(SynchronousTestCase):
    def test_bomb_is_refused_by_its_head(self) -> None:
        with self.assertRaisesRegex(UsageError, "50000x50000 pixels is too large"):
            make_picture(MakePicture(), png(50000, 50000))

    def test_truncated_file_is_refused(self) -> None:
        whole = plain(64, 64, b"\x01\x80\xf0")
        for size in (0, 7, 8, 20, 33, 60):
            with self.assertRaisesRegex(UsageError, "no PNG file"):
                make_picture(MakePicture(), whole[:size])

    def test_wrong_chunks_are_refused(self) -> None:
        whole = plain(8, 8)
        for file in (whole.replace(b"IHDR", b"IHDX"), whole.replace(b"IDAT", b"idXT"), b"\x89PNG\r\n\x1a\n" * 3):
            with self.assertRaisesRegex(UsageError, "no PNG file"):
                make_picture(MakePicture(), file)

    def test_other_formats_are_refused(self) -> None:
        for name in ("GIF", "BMP", "JPEG", "TIFF"):
            written = io.BytesIO()
            Image.new("RGB", (8, 8)).save(written, name)
            with self.assertRaisesRegex(UsageError, "no PNG file"):
                make_picture(MakePicture(), written.getvalue())

    @given(st.integers(8, 150), st.binary(min_size=1, max_size=12))
    def test_damaged_file_gives_a_picture_or_a_refusal(self, place: int, damage: bytes) -> None:
        whole = bytearray(plain(16, 16, b"\x10\x90\xd0"))
        whole[place : place + len(damage)] = damage
        for act in (lambda: make_picture(MakePicture(longest=8), bytes(whole)), lambda: _letters(bytes(whole))):
            with contextlib.suppress(UsageError):
                act()

    def test_more_pixels_than_can_be_read_are_refused(self) -> None:
        side = int(READ_LIMIT**0.5) + 1
        with self.assertRaisesRegex(UsageError, "name a region"):
            prepare_for_reading(ReadText("/usr/bin/tesseract"), plain(side, side))


def _letters(file: bytes) -> bytes:
    return prepare_for_reading(ReadText("/usr/bin/tesseract"), file)[1]


class ReadingTests(SynchronousTestCase):
    def test_letters_are_dark_on_light_whatever_their_colours(self) -> None:
        for letter, behind in ((b"\xff\xff\xff", b"\x20\x20\x60"), (b"\0\0\0", b"\xff\xff\xff")):
            row = behind * 20 + letter * 2 + behind * 20
            made, written = prepare_for_reading(ReadText("/usr/bin/tesseract"), png(42, 40, row * 40))
            image = Image.open(io.BytesIO(written))
            self.assertEqual((made.factor, image.mode), (3, "L"))
            inside, outside = image.getpixel((63, 60)), image.getpixel((10, 60))
            assert isinstance(inside, int) and isinstance(outside, int)
            self.assertLess(inside, 160)
            self.assertGreater(outside, 240)
