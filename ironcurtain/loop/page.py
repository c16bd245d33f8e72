"""
The text that a terminal shows, and nothing else of it: no colours, no pictures. Pure.

Text can vanish from a terminal in many ways. A :class:`Page` says before it does, so that whoever searches it misses
nothing, however short it was to be seen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from ironcurtain.loop.rows import SPACER, Line, Row, Unwrapper, width

TAB = 8
"""Columns between tab stops, as all terminals begin."""

_GRAPHICS = {code: "─" for code in range(0x60, 0x7F)}
"""DEC's line drawing set: letters that are shown as lines. Which line does not matter here."""


class Page:
    """
    :param sought: what somebody looks for; lines without it may be given together as one, which is faster.
    :param gone: gets lines that have scrolled off.
    :param changing: called before what was written is written over, or is lost in another way.
    :ivar x: the cursor's column; beyond the last one: the next letter goes to the next row.
    :ivar y: its row.
    """

    def __init__(
        self,
        columns: int,
        rows: int,
        sought: Sequence[str],
        gone: Callable[[Sequence[Line]], None],
        changing: Callable[[], None],
    ) -> None:
        self.columns, self.rows, self._sought = columns, rows, sought
        self._gone, self._changing = gone, changing
        self._rare = {_rarest(each) for each in sought}
        self._suspect = True
        self._off = Unwrapper()
        self._dirty = False
        self._start()

    def _start(self) -> None:
        self._page = self._empty(self.rows)
        self._other: list[Row] | None = None
        self.x = self.y = 0
        self._auto_wrap = True
        self.soft_reset()

    def soft_reset(self) -> None:
        """Modes and margins as in the beginning; as in xterm, wrapping stays."""
        self._saved = self._other_saved = (0, 0, False)
        self._top, self._bottom = 0, self.rows - 1
        self._origin = self._insert = False
        self._sets, self._shift = [False, False], 0

    @property
    def alternates(self) -> bool:
        """Whether the alternate screen is shown: nothing has scrolled off of that."""
        return self._other is not None

    def lines(self) -> list[Line]:
        """:returns: what it shows, from its top; the first line with what has scrolled off of it."""
        joined = self._off.copy() if self._other is None else Unwrapper(self._off.index)
        found = [joined.add(row, number == self.rows - 1) for number, row in enumerate(self._page)]
        return [line for line in found if line is not None]

    @property
    def promising(self) -> bool:
        """Whether it may show something that is sought; quick to say."""
        if not self._suspect:
            return False
        text = "".join([row.text for row in self._page])
        self._suspect = self._other is not None or any(letter in text for letter in self._rare)
        return self._suspect and self._is_in(text)

    def plain(self, lines: list[str]) -> bool:
        """
        Take many lines at once, unless something makes that hard.

        :param lines: of printable text; a new line ends each but the last one.
        :returns: whether they were taken.
        """
        hard = not self._auto_wrap or self._insert or self._sets[self._shift] or self._other is not None
        scrolls = (self._top, self._bottom) == (0, self.rows - 1)
        below = any(row.written() for row in self._page[self.y + 1 :])
        if len(lines) < 2 * self.rows or hard or not scrolls or below:
            return False
        self.write(lines[0])
        self.new_line()
        above, self._page, self.y = self._page[: self.y], self._empty(self.rows), 0
        before = "".join([row.text for row in above])  # it may have begun several rows ago, where they are short
        self._leave(above, lines[1 : -self.rows], self._is_in(before + "".join(lines[1:])))
        for line in lines[-self.rows : -1]:
            self.write(line)
            self.new_line()
        self.write(lines[-1])
        return True

    def write(self, text: str) -> None:
        """Text without control characters."""
        if self._sets[self._shift]:
            text = text.translate(_GRAPHICS)
        for letter in self._rare:
            if letter in text:
                self._suspect = True
        if text.isascii() or all(width(letter) == 1 for letter in set(text)):
            self._write_narrow(text)
        else:
            for letter in text:
                self._write_letter(letter)

    def _write_narrow(self, text: str) -> None:
        while text:
            self._enter()
            room = self.columns - self.x
            self._put(text[:room])
            text = text[room:]
            if text and not self._auto_wrap:
                text, self.x = text[-1:], self.columns - 1

    def _write_letter(self, letter: str) -> None:
        cells = width(letter)
        if cells == 0:
            self._page[self.y].combine(min(self.x, self.columns), letter)
            return
        self._enter()
        if cells == 2 and self.x == self.columns - 1:
            if not self._auto_wrap or self.columns == 1:
                return
            self._put(SPACER)
            self._enter()
        self._put([letter, ""] if cells == 2 else letter)

    def _enter(self) -> None:
        """Be where the next letter goes: on the next row, if this one is full."""
        if self.x < self.columns:
            return
        if self._auto_wrap:
            self._page[self.y].wraps = True
            self.new_line()
        else:
            self.x = self.columns - 1

    def _put(self, piece: Sequence[str]) -> None:
        row, end = self._page[self.y], self.x + len(piece)
        if self._insert:
            self._destroy()
            row.insert(self.x, piece)
        elif row.written(self.x, end) and row.cells[self.x : end] != list(piece):
            self._destroy()
            row.put(self.x, piece)
        else:
            row.fill(self.x, piece)
        self.x, self._dirty = end, True

    def new_line(self) -> None:
        """Carriage return and line feed."""
        self.x = 0
        self.line_feed()

    def line_feed(self) -> None:
        """To the next row; at the lower margin, what is above scrolls."""
        self.x = self._column
        if self.y == self._bottom:
            self.scroll_up(1)
        elif self.y < self.rows - 1:
            self.y += 1

    def reverse_feed(self) -> None:
        """To the row above; at the upper margin, what is below scrolls."""
        if self.y == self._top:
            self.scroll_down(1)
        elif self.y > 0:
            self.x, self.y = self._column, self.y - 1

    def tab(self, times: int) -> None:
        """To a later tab stop; a negative number: to an earlier one."""
        if times > 0 and self.x == self.columns:
            return
        column = self._column
        stop = column // TAB + times if times >= 0 else -(-column // TAB) + times
        self.x = max(0, min(stop * TAB, self.columns - 1))

    def move(self, right: int, down: int) -> None:
        """Move the cursor, up to the margins that it is within."""
        top = self._top if self.y >= self._top else 0
        bottom = self._bottom if self.y <= self._bottom else self.rows - 1
        self.x = max(0, min(self._column + right, self.columns - 1))
        self.y = max(top, min(self.y + down, bottom))

    def place(self, column: int | None = None, row: int | None = None) -> None:
        """:param column: counts from 0, as does ``row``; ``None``: stays."""
        self.x = self._column if column is None else max(0, min(column, self.columns - 1))
        if row is not None:
            first, last = (self._top, self._bottom) if self._origin else (0, self.rows - 1)
            self.y = max(first, min(first + row, last))

    def erase_display(self, how: int) -> None:
        """:param how: 0: from the cursor on; 1: up to it; 2: all; else what has scrolled off: nothing changes here."""
        if how > 2:
            return
        self.erase_line(how)
        first, end = {0: (self.y + 1, self.rows), 1: (0, self.y)}.get(how, (0, self.rows))
        if any(row.written() for row in self._page[first:end]):
            self._destroy()
        self._page[first:end] = self._empty(end - first)

    def erase_line(self, how: int) -> None:
        """:param how: as for :meth:`erase_display`, of the cursor's row."""
        self.x = self._column
        first, end = {0: (self._column, self.columns), 1: (0, self._column + 1)}.get(how, (0, self.columns))
        self._erase(first, end)

    def erase(self, count: int) -> None:
        """Erase characters from the cursor on."""
        self.x = self._column
        self._erase(self._column, min(self._column + count, self.columns))
        self._page[self.y].wraps = False

    def insert(self, count: int) -> None:
        """Move the rest of the row to the right."""
        self._destroy()
        self.x = self._column
        self._page[self.y].insert(self.x, [" "] * min(count, self.columns - self.x))

    def delete(self, count: int) -> None:
        """Move the rest of the row to the left."""
        self._destroy()
        self.x = self._column
        self._page[self.y].delete(self.x, count)

    def insert_lines(self, count: int) -> None:
        """Move the rows from the cursor's on down."""
        if self._top <= self.y <= self._bottom:
            self._shift_down(self.y, count)
            self.x = 0

    def delete_lines(self, count: int) -> None:
        """Move the rows below the cursor's up."""
        if self._top <= self.y <= self._bottom:
            self._destroy()
            self._unwrap(self.y)
            self._shift_up(self.y, count)
            self.x = 0

    def scroll_up(self, count: int) -> None:
        """Move what is within the margins up; rows that leave the page at its top are kept by a terminal."""
        if self._top or self._other is not None:
            self._destroy()
            self._shift_up(self._top, count)
        else:
            above = self._page[: min(count, self._bottom + 1)]
            self._shift_up(0, count)
            self._leave(above)

    def scroll_down(self, count: int) -> None:
        """Move what is within the margins down."""
        self._shift_down(self._top, count)

    def set_margins(self, top: int, bottom: int) -> None:
        """:param top: first row that scrolls, from 0; ``bottom`` is the last one."""
        bottom = min(bottom, self.rows - 1)
        if top < bottom:
            self._top, self._bottom = top, bottom
            self.place(0, 0)

    def set_mode(self, name: str, on: bool) -> None:
        """:param name: ``origin``: rows count from the upper margin; ``insert``; ``wrap``."""
        if name == "origin":
            self._origin = on
            self.place(0, 0)
        elif name == "insert":
            self._insert = on
        else:
            self._auto_wrap = on

    def choose_set(self, number: int, graphics: bool) -> None:
        """:param number: 0 or 1; whether that set draws lines."""
        self._sets[number] = graphics

    def shift(self, number: int) -> None:
        """Write with that set."""
        self._shift = number

    def save(self) -> None:
        """Remember the cursor."""
        self._saved = self.x, self.y, self._origin

    def restore(self) -> None:
        """Put the cursor where it was."""
        x, y, self._origin = self._saved
        self.x, self.y = min(x, self.columns), min(y, self.rows - 1)

    def alternate(self, on: bool) -> None:
        """Show the other screen, empty, or come back."""
        if on and self._other is None:
            self._destroy()
            self._other, self._page = self._page, self._empty(self.rows)
            self._saved, self._other_saved = self._other_saved, self._saved
        elif not on and self._other is not None:
            self._destroy()
            self._page, self._other, self._dirty = self._other, None, True
            self._saved, self._other_saved = self._other_saved, self._saved

    def reset(self) -> None:
        """Be as in the beginning."""
        self._destroy()
        self._start()

    def resize(self, columns: int, rows: int) -> None:
        """Have another size; rows are cut or filled up, as xterm does it."""
        self._destroy()
        excess = max(0, self.y - rows + 1)
        above, self._page = self._page[:excess], self._page[excess:]
        self.columns, self.rows = columns, rows
        self.y -= excess
        self.x = min(self.x, columns)
        for page in (self._page, self._other or []):
            for row in page:
                row.fit(columns)
            page[rows:] = []
            page += self._empty(rows - len(page))
        self._top, self._bottom = 0, rows - 1
        if self._other is None:
            self._leave(above)

    @property
    def _column(self) -> int:
        return min(self.x, self.columns - 1)

    def _empty(self, rows: int) -> list[Row]:
        return [Row([" "] * self.columns) for _ in range(rows)]

    def _destroy(self) -> None:
        if self._dirty:
            self._dirty = False
            self._changing()

    def _erase(self, first: int, end: int) -> None:
        row = self._page[self.y]
        if row.written(first, end):
            self._destroy()
        row.erase(first, end)

    def _shift_up(self, first: int, count: int) -> None:
        count = min(count, self._bottom - first + 1)
        del self._page[first : first + count]
        new = self._bottom - count + 1
        self._page[new:new] = self._empty(count)

    def _shift_down(self, first: int, count: int) -> None:
        self._destroy()
        count = min(count, self._bottom - first + 1)
        end = self._bottom + 1
        self._unwrap(first)
        del self._page[end - count : end]
        self._page[first:first] = self._empty(count)

    def _unwrap(self, first: int) -> None:
        for row in self._page[first : self._bottom + 1]:
            row.wraps = False

    def _leave(self, rows: Iterable[Row], texts: Sequence[str] = (), apart: bool = False) -> None:
        """
        Rows have left the page at its top, and after them whole lines that were never on it.

        :param apart: whether those are told apart, as something that is sought may be in them.
        """
        lines = [line for row in rows if (line := self._off.add(row)) is not None]
        if texts:
            lines += self._off.whole(texts, self.columns, apart)
        if lines:
            self._gone(lines)

    def _is_in(self, text: str) -> bool:
        return any(sought in text for sought in self._sought)


def _rarest(sought: str) -> str:
    """:returns: the letter that most texts without it have not either."""
    return max(sought, key=lambda letter: (not letter.isalnum() and letter != "_", letter.isupper()))
