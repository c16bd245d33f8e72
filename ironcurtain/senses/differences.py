"""Find what has changed between two pictures of a screen. Only confined processes run this."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ironcurtain.senses.model import Box
from ironcurtain.senses.pictures import cut, decoded
from ironcurtain.senses.wire import CHANGES_LIMIT, FindChanges

if TYPE_CHECKING:
    from PIL.Image import Image

TILE = 32
"""Width and height in pixels of the squares that are compared."""

SHADE = 16
"""Difference of a colour, of 255, from which on a pixel has changed."""

SMALL = 2
"""Adjacent squares that may change unnoticed: a caret blinks in one or two."""


def find_changes(order: FindChanges, data: bytes) -> list[Box]:
    """
    :returns: what has changed, in pixels of the second picture, the largest first.
    :raises UsageError: a picture cannot be read.
    """
    before, after = decoded(data[: order.size]), decoded(data[order.size :])
    before, (after, left, top) = cut(before, order.region, order.hidden)[0], cut(after, order.region, order.hidden)
    if before.size != after.size:
        return [Box(left, top, after.width, after.height)]
    boxes = [_box(group, after, left, top) for group in _groups(_changed(before, after)) if len(group) > SMALL]
    return sorted(boxes, key=lambda box: -box.width * box.height)[:CHANGES_LIMIT]


def _changed(before: Image, after: Image) -> set[tuple[int, int]]:
    """:returns: the squares, by column and row, in which more than a few pixels have changed."""
    from PIL import ImageChops

    red, green, blue = ImageChops.difference(before, after).split()
    most = ImageChops.lighter(ImageChops.lighter(red, green), blue)
    tiles = most.point([255 if shade > SHADE else 0 for shade in range(256)]).reduce(TILE)
    return {(place % tiles.width, place // tiles.width) for place, share in enumerate(tiles.tobytes()) if share}


def _groups(tiles: set[tuple[int, int]]) -> list[set[tuple[int, int]]]:
    """:returns: the squares in groups that touch each other."""
    left, groups = set(tiles), list[set[tuple[int, int]]]()
    while left:
        group, edge = set[tuple[int, int]](), [left.pop()]
        while edge:
            group.add(tile := edge.pop())
            near = {(tile[0] + x, tile[1] + y) for x in (-1, 0, 1) for y in (-1, 0, 1)} & left
            left -= near
            edge += near
        groups.append(group)
    return groups


def _box(group: set[tuple[int, int]], picture: Image, left: int, top: int) -> Box:
    columns, rows = [column for column, _ in group], [row for _, row in group]
    x, y = min(columns) * TILE, min(rows) * TILE
    right, bottom = min(picture.width, (max(columns) + 1) * TILE), min(picture.height, (max(rows) + 1) * TILE)
    return Box(left + x, top + y, right - x, bottom - y)
