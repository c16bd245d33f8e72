"""Finding the promise and events in what a program shows."""

from __future__ import annotations

from hypothesis import example, given, settings
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.terminal.echo import LoopEvent, Promise
from ironcurtain.terminal.emulator_wire import KEPT
from ironcurtain.terminal.scan import Scanner
from tests.loop.corpus import MADE, MISSED, PROMISE, PROMPT

SIZE = (40, 12)


def scan(output: bytes, prompt: str = PROMPT, size: tuple[int, int] | None = SIZE, step: int = 0) -> Scanner:
    """:returns: a scanner that has read all, in pieces of a size."""
    scanner = Scanner(Promise(PROMISE), prompt, size)
    for at in range(0, len(output), step or len(output) or 1):
        scanner.feed(output[at : at + step] if step else output)
    return scanner


class PromiseTests(SynchronousTestCase):
    """It is found wherever a person could have read it, and nowhere else."""

    def test_it_is_found(self) -> None:
        wrong = [name for name, output in MADE.items() if not scan(output).end()]
        self.assertEqual(wrong, [])

    def test_near_misses(self) -> None:
        wrong = [name for name, output in MISSED.items() if scan(output).end()]
        self.assertEqual(wrong, [])

    @given(st.integers(0, 300), st.integers(0, 300), st.integers(0, 2000))
    def test_it_is_found_where_a_program_wrapped_it_and_it_has_scrolled_off(
        self, above: int, below: int, step: int
    ) -> None:
        before, after = b"before\r\n" * above, b"some line of a build\r\n" * below
        self.assertTrue(scan(before + b"-" * 34 + b" LOOP_\r\nCOMPLETE\r\n" + after, step=step).end())

    @given(st.integers(3, 20), st.integers(0, 40), st.integers(0, 40), st.integers(0, 300), st.integers(0, 2000))
    def test_it_is_found_on_a_terminal_that_is_narrower(
        self, columns: int, before: int, above: int, below: int, step: int
    ) -> None:
        text = "-" * before + f" {PROMISE} "
        wrapped = [text[at : at + columns] for at in range(0, len(text), columns)]
        lines = ["no"] * above + wrapped + ["and"] * below
        self.assertTrue(scan("\r\n".join(lines).encode(), size=(columns, 12), step=step).end())

    def test_much_comes_while_it_is_written_over_several_rows(self) -> None:
        scanner = Scanner(Promise(PROMISE), PROMPT, (3, 12))
        for output in (b"LOO\r\nP_C\r\n", b"OMP\r\nLET\r\nE\r\n" + b"no\r\n" * 2000):
            scanner.feed(output)
        self.assertTrue(scanner.end())

    @given(st.sampled_from(sorted(MADE)), st.integers(1, 9))
    def test_it_is_found_however_reads_are_cut(self, name: str, step: int) -> None:
        self.assertTrue(scan(MADE[name], step=step).end())

    @given(st.sampled_from(sorted(MISSED)), st.integers(1, 9))
    def test_near_misses_however_reads_are_cut(self, name: str, step: int) -> None:
        self.assertFalse(scan(MISSED[name], step=step).end())

    def test_near_misses_before_it_hide_nothing(self) -> None:
        between = b"\x1b[!p\x1b[?1049l\x1b[r\x1b[2J\x1b[12;1H\r\n\r\nand so\r\n"
        wrong = [
            (name, missed)
            for name, made in MADE.items()
            for missed, output in MISSED.items()
            if not scan(output + between + made).end()
        ]
        self.assertEqual(wrong, [])

    @given(st.binary(max_size=300), st.sampled_from(sorted(MISSED)))
    def test_nothing_is_found_where_nothing_is(self, noise: bytes, name: str) -> None:
        self.assertFalse(scan(noise.replace(b"L", b"l")).end())

    def test_without_a_terminal_lines_end_without_a_return(self) -> None:
        output = b"first\nsecond " + b"x" * 3000 + b"\nLOOP_COMPLETE\nlast\n"
        scanner = scan(output, size=None)
        self.assertTrue(scanner.end())
        self.assertEqual(scanner.text(), output.decode().rstrip())

    def test_a_promise_of_several_words(self) -> None:
        promise = Promise("<promise>all  done</promise>")
        for output, found in (
            (b"<promise>all\r\n   done</promise>", True),
            (b"<promise>all not done</promise>", False),
        ):
            scanner = Scanner(promise, "Say <promise>all done</promise> when it is.", SIZE)
            scanner.feed(output)
            self.assertEqual(scanner.end(), found, output)

    def test_the_tag_counts_alone_on_its_lines_for_a_promise_with_and_without_it(self) -> None:
        for promise, output, made in (
            ("DONE", "<promise>DONE</promise>", True),
            ("DONE", "so\n<promise>\n  DONE \n</promise>\nand more", True),
            ("DONE", "**<promise> DONE</promise>**", True),
            ("DONE", "<Promise >DONE</PROMISE>", True),
            ("all done", "<promise>all\n done</promise>", True),
            ("DONE", "DONE", True),
            ("DONE", "<promise>NOT DONE</promise>", False),
            ("DONE", "<promise>DONE soon</promise>", False),
            ("DONE", "<promise>DONE", False),
            ("DONE", "I shall print <promise>DONE</promise> later", False),
            ("<promise>DONE</promise>", "<promise>DONE</promise>", True),
            ("<promise>\nDONE\n</promise>", "<promise>DONE</promise>", True),
            ("<promise>DONE</promise>", "DONE", False),
        ):
            for size in (None, SIZE):
                scanner = Scanner(Promise(Promise(promise).text), "Work on the plan.", size)
                scanner.feed(output.replace("\n", "\r\n").encode())
                self.assertEqual(scanner.end(), made, (promise, output, size))

    def test_the_tag_in_an_echoed_prompt_does_not_count_but_the_agents_does(self) -> None:
        for promise in ("DONE", "<promise>DONE</promise>"):
            for prompt in (
                "Mend it. When all is well, print\n\n<promise>DONE</promise>\n\nas the last line.",
                "Mend it, then print <promise>DONE</promise>",
                "Mend it, then print\n<promise>\nDONE\n</promise>\n",
                "<promise>DONE</promise>\nis what to print once it is mended.",
            ):
                for size in (None, (80, 24)):
                    scanner = Scanner(Promise(promise), prompt, size)
                    scanner.feed(prompt.replace("\n", "\r\n").encode() + b"\r\n")
                    scanner.feed(b"> " + prompt.replace("\n", "\r\n> ").encode() + b"\r\n")
                    scanner.feed(b"Nothing is mended yet.\r\n")
                    self.assertFalse(scanner.end(), (promise, prompt, size))
                    scanner.feed(b"All of it is mended now.\r\n<promise>DONE</promise>\r\n")
                    self.assertTrue(scanner.end(), (promise, prompt, size))

    def test_an_empty_one_is_none(self) -> None:
        for text in (" \n", "<promise> </promise>", "<promise></promise>"):
            with self.assertRaises(ValueError):
                Promise(text)

    def test_a_size_that_changes(self) -> None:
        scanner = scan(b"LOOP_COM")
        scanner.resize(30, 8)
        scanner.feed(b"PLETE\r\n")
        self.assertTrue(scanner.end())


class EchoTests(SynchronousTestCase):
    """What repeats the prompt is none of what the agent says."""

    def test_a_prompt_that_ends_with_it(self) -> None:
        prompt = "Mend it.\nWhen all is done, print this:\n\nLOOP_COMPLETE\n"
        shown = prompt.replace("\n", "\r\n").encode()
        self.assertFalse(scan(shown, prompt).end())
        self.assertTrue(scan(shown + b"\r\nAll is mended.\r\n\r\nLOOP_COMPLETE\r\n", prompt).end())

    def test_a_prompt_that_begins_with_it(self) -> None:
        prompt = "LOOP_COMPLETE is what you print in the end. Mend it."
        self.assertFalse(scan(prompt.encode(), prompt).end())
        self.assertFalse(scan(b"LOOP_COMPLETE\r\x1b[2K" + prompt.encode(), prompt).end())
        self.assertTrue(scan(prompt.encode() + b"\r\n\r\nMended.\r\nLOOP_COMPLETE\r\n", prompt).end())

    def test_a_prompt_that_is_nothing_else_is_never_told_from_its_echo(self) -> None:
        self.assertFalse(scan(b"LOOP_COMPLETE\r\n", "LOOP_COMPLETE").end())

    def test_a_prompt_without_it(self) -> None:
        self.assertTrue(scan(b"print\r\nLOOP_COMPLETE", "Mend it.").end())

    def test_what_a_person_types_is_shown_too(self) -> None:
        scanner = scan(b"> ", "Mend it.")
        scanner.typed(b"do not say LOOP_COMPLETE before the docs are done\r")
        scanner.feed(b"do not say LOOP_COMPLETE before the docs are done\r\n")
        self.assertFalse(scanner.end())
        scanner.feed(b"Now the docs are there.\r\nLOOP_COMPLETE\r\n")
        self.assertTrue(scanner.end())

    def test_what_a_person_types_alone_is_no_promise_of_the_agent(self) -> None:
        for shown in (b"LOOP_COMPLETE\r\n", b"\x1b[2K\r> LOOP_COMPLETE\x1b[2K\r\n\xe2\x9d\xaf LOOP_COMPLETE\r\n"):
            scanner = scan(b"> ", "Mend it.")
            scanner.typed(b"LOOP_COMP")
            scanner.feed(shown[:6])
            scanner.typed(b"LETE\r")
            scanner.feed(shown[6:] + b"no\r\n" * 200)
            self.assertFalse(scanner.end())

    def test_what_a_person_types_letter_by_letter(self) -> None:
        scanner = scan(b"> ", "Mend it.")
        for number, letter in enumerate(b"LOOP_COMPLETE is for later\r"):
            scanner.typed(bytes((letter,)))
            scanner.feed(b"\r\x1b[2K> " + b"LOOP_COMPLETE is for later"[: number + 1])
        self.assertFalse(scanner.end())
        scanner.feed(b"\r\n\r\nNow it is later.\r\nLOOP_COMPLETE\r\n")
        self.assertTrue(scanner.end())

    @given(st.integers(10, 100), st.integers(0, 20), st.sampled_from(("", "> ", "│ ", "  ")))
    def test_the_prompt_wrapped_at_any_width(self, width: int, above: int, margin: str) -> None:
        import textwrap

        lines = textwrap.wrap(PROMPT, width, break_long_words=False)
        output = "x\r\n" * above + "".join(f"{margin}{line}\r\n" for line in lines)
        self.assertFalse(scan(output.encode(), size=(120, 30)).end())


class EventTests(SynchronousTestCase):
    """What the next iteration is told."""

    def test_they_are_found(self) -> None:
        done = LoopEvent("build.done", "Task completed")
        for output in (
            b'<event topic="build.done">Task completed</event>',
            b"<event topic='build.done'>Task completed</event>",
            b'<event id="1" topic="build.done" target="x">\r\n  Task completed\r\n</event>\r\n',
            b'\x1b[90m<event topic="bu\x1b[1mild.done">\x1b[0m\r\nTask completed\r\n\x1b[90m</event>\x1b[0m\r\n',
            b'\x1b[?1049h\x1b[5;5H<event topic="build.done">Task completed</event>\x1b[?1049l',
            b'<event topic="build.done">Task completed</event>\r\n' + b"x\r\n" * 100,
            b'<event\r\n  topic="build.done">Task completed</event>' + b"\x1b[2J",
            b'<event topic=\r\n"build.done">Task completed</event>',
            '│ <event topic="build.done">      │\r\n│ Task completed │\r\n│ </event> │'.encode(),
        ):
            for step in (0, 1, 7):
                scanner = scan(output, step=step)
                scanner.end()
                self.assertEqual(scanner.events, [done], (output, step))

    @example(columns=5, before=47, above=38, below=266, step=0)  # lines that end in a blank, read all at once
    @given(st.integers(5, 60), st.integers(0, 60), st.integers(0, 40), st.integers(0, 300), st.integers(0, 2000))
    def test_they_are_found_where_a_program_wrapped_them(
        self, columns: int, before: int, above: int, below: int, step: int
    ) -> None:
        text = "x" * before + ' <event topic="build.done">It is all done</event> and so on.'
        wrapped = [text[at : at + columns] for at in range(0, len(text), columns)]
        lines = ["before"] * above + wrapped + ["line"] * below
        scanner = scan("\r\n".join(lines).encode(), size=(columns, 12), step=step)
        scanner.end()
        found = [(event.topic, "".join(event.payload.split())) for event in scanner.events]
        self.assertEqual(found, [("build.done", "Itisalldone")])

    def test_blanks_tell_them_apart(self) -> None:
        scanner = scan(b'<event topic="n">1 1</event>\r\n<event topic="n">11</event>\r\n' + b"x" * 40 + b"\r\n" * 30)
        scanner.end()
        self.assertEqual([event.payload for event in scanner.events], ["1 1", "11"])

    def test_a_topic_of_several_words(self) -> None:
        for topic in ("build is done", "build\r\nis done"):
            for line in ("", "x" * 40):
                scanner = scan(f'{line}\r\n<event topic="{topic}">b</event>'.encode())
                scanner.end()
                self.assertEqual(scanner.events, [LoopEvent("build is done", "b")], (topic, line))

    def test_one_whose_lines_reach_the_margin_is_one(self) -> None:
        scanner = scan(b'<event topic="a">\r\n' + b"x" * 40 + b"\r\ny\r\n</event>\r\n")
        scanner.end()
        self.assertEqual(scanner.events, [LoopEvent("a", "x" * 40 + "\ny")])

    def test_one_in_a_frame_that_reaches_the_margin_is_one(self) -> None:
        rows = ['<event topic="a">', "the first half of", "what is to be said", "</event>"]
        output = "".join(f"│ {row:36} │\r\n" for row in rows) + "x\r\n" * 100
        for step in (0, 7):
            scanner = scan(output.encode(), step=step)
            scanner.end()
            self.assertEqual(scanner.events, [LoopEvent("a", "the first half of\nwhat is to be said")])

    def test_one_that_is_longer_than_the_screen(self) -> None:
        lines = [f"line {n}" for n in range(200)]
        scanner = scan(b'<event topic="a">' + "\r\n".join(lines).encode() + b"</event>\r\n" + b"x\r\n" * 50, step=100)
        scanner.end()
        self.assertEqual([(event.topic, event.payload.split("\n")) for event in scanner.events], [("a", lines)])

    def test_one_that_is_drawn_again_is_one(self) -> None:
        output = b'\x1b[H\x1b[J<event topic="a">b</event>\r\n'
        scanner = scan(output * 9)
        scanner.end()
        self.assertEqual(scanner.events, [LoopEvent("a", "b")])

    def test_they_come_as_they_are_seen(self) -> None:
        heard: list[LoopEvent] = []
        scanner = Scanner(Promise(PROMISE), PROMPT, SIZE, heard.append)
        scanner.feed(b'<event topic="a">b</event>\r\n')
        scanner.feed(b"x\r\n" * 20)
        self.assertEqual(heard, [LoopEvent("a", "b")])

    def test_those_of_the_prompt_do_not_count(self) -> None:
        prompt = 'Say <event topic="build.done">what you did</event> and print LOOP_COMPLETE.'
        scanner = scan(prompt.encode() + b'\r\n<event topic="build.done">all</event>\r\n', prompt)
        scanner.end()
        self.assertEqual(scanner.events, [LoopEvent("build.done", "all")])

    def test_near_misses(self) -> None:
        for output in (
            b'<event topic="a">never closed',
            b"<event>b</event>",
            b"</event>",
            b'<event topic="a"></evant>',
            b'<events topic="a">b</events>',
        ):
            scanner = scan(output)
            scanner.end()
            self.assertEqual(scanner.events, [], output)


LINES = (b"", b"short", b"y" * 45, b"z" * 80, "é中".encode(), b"\x1b[1;31mred\x1b[0m and more", b"LOOP_COMPLETED")
HINTS = (
    *(b"LOOP_COMPLETE", b"All done: LOOP_COMPLETE.", b"\x1b[1mLOOP_\x1b[0mCOMPLETE", b"x" * 34 + b" LOOP_COMPLETE"),
    *(b"x" * 34 + b" LOOP_\r\nCOMPLETE", b"docs/LOOP_COMPLETE", PROMPT.encode(), b'<event topic="a">b</event>'),
    *(b'<event topic="c">\r\nd\r\n</event>', b"</event>", b"\x1b[2J", b"\x1b[5A\x1b[K", b"\x1b[?1049h", b"\x1b[?1049l"),
)


class ManyLinesTests(SynchronousTestCase):
    """Much at once is read in another way than a little: what is found must be the same."""

    def test_an_event_with_much_behind_it(self) -> None:
        begin, end = b'<event topic="a">\r\n' + b"b\r\n" * 30, b"</event>\r\n"
        much = b"some line of a build\r\n" * 5000
        for first, rest in ((begin + end + much, b""), (begin, end + much)):
            scanner = scan(first)
            scanner.feed(rest)
            scanner.end()
            self.assertEqual([event.topic for event in scanner.events], ["a"])

    def test_many_events_at_once(self) -> None:
        payloads = [f"{number} " + "word " * 40 + "end" for number in range(900)]
        output = "".join(f'<event topic="a">{payload}</event>\r\n' for payload in payloads)
        scanner = scan(output.encode(), size=(1000, 24))
        scanner.end()
        self.assertEqual([event.payload for event in scanner.events], payloads)

    def test_an_event_that_is_never_closed_hides_no_other(self) -> None:
        output = b'<event topic="a">never closed\r\n' + b"some line\x1b[K\r\n" * 4000 + b'<event topic="b">c</event>'
        scanner = scan(output, step=100)
        scanner.end()
        self.assertEqual(scanner.events, [LoopEvent("b", "c")])

    def test_an_event_that_is_too_long(self) -> None:
        scanner = scan(b'<event topic="a">' + b"some line of a build\r\n" * 5000 + b"</event>\r\n" + b"\r\n" * 50)
        scanner.end()
        self.assertEqual(scanner.events, [])

    @settings(max_examples=50, deadline=None)
    @given(st.lists(st.sampled_from(LINES + HINTS), max_size=12), st.lists(st.integers(0, 400), min_size=1, max_size=4))
    def test_all_at_once_and_in_small_pieces(self, lines: list[bytes], fillers: list[int]) -> None:
        output = b""
        for number, line in enumerate(lines):
            output += line + b"\r\n" + b"some line of a build\r\n" * fillers[number % len(fillers)]
        at_once, in_pieces = scan(output), scan(output, step=997)
        self.assertEqual(at_once.end(), in_pieces.end())
        self.assertEqual(at_once.events, in_pieces.events)
        self.assertEqual(at_once.text(), in_pieces.text())


class KeepingTests(SynchronousTestCase):
    """What is kept is bounded."""

    def test_lines(self) -> None:
        scanner = scan(b"".join(b"line %d\r\n" % n for n in range(100_000)), step=5000)
        scanner.end()
        self.assertTrue(scanner.text().endswith("line 99998\nline 99999"))
        self.assertLessEqual(len(scanner.text()), KEPT)

    def test_one_line_without_end(self) -> None:
        for size in (SIZE, None):
            scanner = scan(b"x" * 2_000_000 + b" LOOP_COMPLETE", size=size, step=50_000)
            self.assertFalse(scanner.end())
            self.assertLessEqual(len(scanner.text()), KEPT)
