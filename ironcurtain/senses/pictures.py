"""
Decode pictures, with Pillow. Only confined processes run this: the bytes come from programs that nobody trusts.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ironcurtain.errors import UsageError
from ironcurtain.senses.model import PIXELS_LIMIT, Box, Mark, Picture
from ironcurtain.senses.wire import Enlarged, MakePicture, ReadText

if TYPE_CHECKING:
    from PIL.Image import Image

READ_LIMIT = 16 * 1024 * 1024
"""Maximum number of pixels in which text is read: more takes longer than the process may."""

SMALL, MEDIUM = 1024 * 1024, 3 * 1024 * 1024
"""Pixels up to which a picture is enlarged threefold and twofold; its letters are likely ten pixels high."""

SURROUNDINGS = 13
"""Width in pixels of what decides the colour behind a letter: letters of a screen's usual text cover less of it."""

MARK_COLOUR = (220, 0, 90)


def decoded(png: bytes) -> Image:
    """
    :returns: the pixels of a PNG file, in colour, without transparency.
    :raises UsageError: it is none that can be read, or has too many pixels.
    """
    from PIL import Image

    Image.MAX_IMAGE_PIXELS = None  # its own limit warns first; ours is checked before anything is unpacked
    try:
        picture = Image.open(io.BytesIO(png), formats=("PNG",))
        width, height = picture.size
        if width * height > PIXELS_LIMIT:
            raise UsageError(f"a picture of {width}x{height} pixels is too large")
        return picture.convert("RGB")
    except UsageError:
        raise
    except Exception as e:  # whatever the decoder raises
        raise UsageError(f"the picture is no PNG file that can be read ({type(e).__name__})") from None


def cut(picture: Image, region: Box | None, hidden: Sequence[Box]) -> tuple[Image, int, int]:
    """:returns: the part of a picture that is wanted, with the rest painted over, and where in the picture it is."""
    from PIL import ImageDraw

    draw = ImageDraw.Draw(picture)
    for box in hidden:
        if (part := _inside(box, picture)) is not None:
            draw.rectangle(part, fill=(0, 0, 0))
    if region is None:
        return picture, 0, 0
    if (part := _inside(region, picture)) is None:
        raise UsageError(f"the region is outside the picture, which has {picture.width}x{picture.height} pixels")
    return picture.crop(part), part[0], part[1]


def _inside(box: Box, picture: Image) -> tuple[int, int, int, int] | None:
    """:returns: the part of a box that is in a picture, if any is: left, top, right and bottom."""
    left, top = max(0, box.x), max(0, box.y)
    right, bottom = min(picture.width, box.x + box.width), min(picture.height, box.y + box.height)
    return (left, top, right, bottom) if left < right and top < bottom else None


def make_picture(order: MakePicture, png: bytes) -> Picture:
    """:raises UsageError: the picture cannot be read, or the region is outside."""
    from PIL.Image import Resampling

    picture, left, top = cut(decoded(png), order.region, order.hidden)
    scale = min(1.0, order.longest / max(picture.size))
    if scale < 1:
        size = (max(1, round(picture.width * scale)), max(1, round(picture.height * scale)))
        picture = picture.resize(size, Resampling.LANCZOS)
    for mark in order.marks:
        _draw(picture, mark, left, top, scale)
    written = io.BytesIO()
    picture.save(written, "PNG", optimize=False)
    return Picture(written.getvalue(), picture.width, picture.height, scale)


def _draw(picture: Image, mark: Mark, left: int, top: int, scale: float) -> None:
    from PIL import ImageDraw

    shape = Box(mark.box.x - left, mark.box.y - top, mark.box.width, mark.box.height)
    drawn = Box(*(round(each * scale) for each in (shape.x, shape.y, shape.width, shape.height)))
    if (part := _inside(drawn, picture)) is None:
        return
    draw, corner = ImageDraw.Draw(picture), (part[0] + 1, part[1] + 1)
    draw.rectangle(part, outline=MARK_COLOUR)
    draw.rectangle(draw.textbbox(corner, mark.label), fill=MARK_COLOUR)
    draw.text(corner, mark.label, fill=(255, 255, 255))


def prepare_for_reading(order: ReadText, png: bytes) -> tuple[Enlarged, bytes]:
    """
    Make black letters on white of letters of any colour on any other, of the size that recognition was made for.

    On a screen of 1024x768 with 17 texts of windows and dialogs, ``tesseract`` reads 13 of them after enlarging alone,
    and all of them, twice as fast, after this.

    :returns: how it was enlarged, and the picture as PGM.
    :raises UsageError: the picture cannot be read, or the region is outside or too large.
    """
    from PIL import ImageChops, ImageFilter, ImageOps
    from PIL.Image import Resampling

    picture, left, top = cut(decoded(png), order.region, order.hidden)
    pixels = picture.width * picture.height
    if pixels > READ_LIMIT:
        raise UsageError(f"{picture.width}x{picture.height} pixels are too many to read at once: name a region")
    behind = picture.filter(ImageFilter.MedianFilter(SURROUNDINGS))
    red, green, blue = ImageChops.difference(picture, behind).split()
    letters = ImageOps.invert(ImageChops.lighter(ImageChops.lighter(red, green), blue))
    factor = 3 if pixels <= SMALL else 2 if pixels <= MEDIUM else 1
    if factor > 1:
        letters = letters.resize((letters.width * factor, letters.height * factor), Resampling.LANCZOS)
    written = io.BytesIO()
    letters.save(written, "PPM")
    return Enlarged(factor, left, top), written.getvalue()
