from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.container.dockerfiles import marked_stages, read_needs

STAGES = """\
# syntax=docker/dockerfile:1
ARG V=1
FROM --platform=linux/amd64 node:${V} AS build
COPY --from=tools /a /b
RUN apt-get update \\
  # COPY of a comment
  && echo COPY no such
COPY package*.json ./tools/x  /app/
FROM build as Dev
ADD ["a b.txt", "/x"]
FROM scratch
copy --chown=1:1 src/*/a.c /x
"""


class NeedsTests(SynchronousTestCase):
    def test_images_stages_and_files_of_a_dockerfile(self) -> None:
        needs = read_needs(STAGES)
        self.assertEqual((needs.images, needs.stages), (("node:${V}", "tools"), ("build", "Dev", "")))
        self.assertEqual(needs.files, ("package*.json", "tools/x", "a b.txt", "src/*/a.c"))
        self.assertEqual(needs.remote, ())

    def test_images_are_named_with_the_values_of_arguments(self) -> None:
        needs = read_needs(STAGES)
        self.assertEqual(needs.named_images({}), ("node:1", "tools"))
        self.assertEqual(needs.named_images({"V": "2", "OTHER": "3"}), ("node:2", "tools"))
        text = (
            "ARG A=a B='b c'\nARG C=\nFROM $A AS one\nARG B=x\nFROM ${D}\nFROM ${A:-z}\nFROM $C\nFROM ${A}\n"
            "COPY --from=One /a /\nCOPY --from=0 /a /\nCOPY --from=q/r:1 /a /\nFROM $E\n"
        )
        self.assertEqual(read_needs(f"ARG E=ONE\n{text}").named_images({"D": "d"}), ("a", "q/r:1"))
        self.assertEqual(read_needs(text).defaults["B"], "b")

    def test_directories_of_copied_files_are_entered_and_no_others(self) -> None:
        needs = read_needs("FROM a\nCOPY src/*.c tools /x\n")
        takes = [path for path in ("src/a.c", "src/b.h", "tools/q/r", "tool", "a.c") if needs.takes(path)]
        self.assertEqual(takes, ["src/a.c", "tools/q/r"])
        entered = [path for path in ("src", "tools", "tools/q", "other", "src/x") if needs.may_take_below(path)]
        self.assertEqual(entered, ["src", "tools", "tools/q"])

    def test_sources_that_cannot_be_known_are_all_files(self) -> None:
        for source in (".", "./", "/", "$WHAT", "a/../b"):
            self.assertEqual(read_needs(f"FROM a\nCOPY {source} /x\n").files, ("*",), source)

    def test_files_of_other_machines_are_remote(self) -> None:
        for source in (
            "https://a.example/x",
            "git@a.example:x",
            "SSH://x",
            "$ANY",
            '"http://x/"',
            'ht"t"p://x',
            "h\\ttp://x",
        ):
            needs = read_needs(f"FROM a\nADD {source} /x\n")
            self.assertEqual((needs.remote, needs.files), ((source,), ()))

    def test_lines_end_where_those_of_the_engine_do(self) -> None:
        for separator in "\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029\r":
            text = f"FROM a\nRUN echo {separator}FROM b\n# x{separator}ADD http://x /y\n"
            needs = read_needs(text)
            self.assertEqual((needs.images, needs.remote), (("a",), ()), repr(separator))
            self.assertEqual(marked_stages(text, "MARK\n", ""), text)

    def test_no_separator_hides_an_instruction_behind_a_comment(self) -> None:
        for separator in "\x1c\x1d\x1e\x1f":
            needs = read_needs(f"FROM a\nRUN echo \\\n{separator}# x\nADD http://x /y\n")
            self.assertEqual(needs.remote, ("http://x",))

    @given(
        st.lists(st.sampled_from(["FROM", "COPY", "ADD", "a", "AS", "--from=x", "[", '"', "\\", "#", "\n", " ", "$"]))
    )
    def test_no_text_is_a_fault(self, words: list[str]) -> None:
        text = " ".join(words)
        read_needs(text)
        self.assertEqual(marked_stages(text, "", "").rstrip("\n"), text.rstrip("\n"))


class MarkTests(SynchronousTestCase):
    def test_all_stages_but_the_result_are_marked(self) -> None:
        marked = marked_stages(STAGES, "MARK\n", "")
        self.assertEqual(marked.replace("MARK\n", ""), STAGES)
        self.assertIn("/app/\nMARK\nFROM build", marked)
        self.assertIn('"/x"]\nMARK\nFROM scratch', marked)

    def test_the_wanted_stage_is_not_marked(self) -> None:
        marked = marked_stages(STAGES, "MARK\n", "dev")
        self.assertIn("/app/\nMARK\nFROM build", marked)
        self.assertIn('"/x"]\nFROM scratch', marked)
