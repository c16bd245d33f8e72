"""Forms as lines: all that a server asks, and nothing that moves a cursor."""

from __future__ import annotations

import msgspec
from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.escalation.form_values import Choice, Field
from ironcurtain.escalation.forms import Form
from ironcurtain.view.escalations import how_to_approve, listing
from ironcurtain.view.forms import OTHERWISE, WARNING, FormDialogue, field_words, form_lines, form_rows, sending_words
from tests.text.visible import invisible
from tests.view.test_escalations import VIEW

COLORS = (Choice("red", "Red"), Choice("green"))
FORM = Form(
    message="Who are you?\nPlease\x1b[2J",
    fields=(
        Field(
            name="name", kind="text", title="Your name", description="As on\nthe door", required=True, least=2, most=9
        ),
        Field(name="mail", kind="text", format="email", pattern=".*"),
        Field(name="age", kind="integer", least=0, default=36),
        Field(name="color", kind="choice", choices=COLORS),
        Field(name="tags", kind="choices", choices=COLORS, most=1, default=["red"]),
        Field(name="sure", kind="boolean", default=False),
    ),
)
FORMS = st.builds(
    Form,
    message=st.text(),
    fields=st.lists(
        st.builds(
            Field,
            name=st.text(),
            kind=st.just("choice"),
            title=st.text(),
            description=st.text(),
            choices=st.lists(st.builds(Choice, st.text(), st.text()), max_size=2).map(tuple),
        ),
        max_size=2,
    ).map(tuple),
)


def answered(dialogue: FormDialogue, line: str) -> list[str]:
    """:returns: the lines after a line that neither sends nor leaves the form."""
    lines = dialogue.enter(line)
    assert isinstance(lines, list)
    return lines


class FormLinesTests(SynchronousTestCase):
    def test_every_field_says_what_fits(self) -> None:
        self.assertEqual(
            form_lines(FORM),
            [
                "| Who are you?",
                "| Please\\x1b[2J",
                "1. Your name (name): text, 2 to 9 characters, required",
                "   As on",
                "   the door",
                "2. mail: text, email, like .*",
                "3. age: a whole number, at least 0, by default 36",
                "4. color: one of the choices",
                "   1) red: Red",
                "   2) green",
                "5. tags: any of the choices, with commas between them, at most 1 of them, by default red",
                "   1) red: Red",
                "   2) green",
                "6. sure: yes or no, by default no",
                WARNING,
            ],
        )

    def test_pattern_that_only_the_server_checks_is_called_so(self) -> None:
        words = [field_words(Field(name="x", kind="text", pattern=pattern)) for pattern in ("^a", "(?=a)")]
        self.assertEqual(words, ["text, like ^a", "text, like (?=a) (which only the server checks)"])

    def test_address_has_its_host_on_a_line(self) -> None:
        form = Form(message="Log in", url="https://a.example/x?y=1", host="a.example")
        self.assertEqual(form_lines(form)[:3], ["| Log in", "host: a.example", "address: https://a.example/x?y=1"])
        self.assertIn("not opened for you", form_lines(form)[3])

    def test_message_cannot_imitate_an_address(self) -> None:
        for begin in ("Log in\n", "x" * 38, "x" * 40 + " "):
            message = f"{begin}host: good.example\naddress: https://good.example/"
            form = Form(message=message, url="https://bad.example/", host="bad.example")
            for lines in (form_lines(form), form_rows(form, 40), form_rows(form, 42)):
                self.assertEqual([line for line in lines if line.startswith("host:")], ["host: bad.example"])

    @given(FORMS)
    def test_nothing_invisible_is_shown(self, form: Form) -> None:
        lines = form_lines(form)
        self.assertFalse(any(invisible(line.replace("\t", "")) or "\n" in line for line in lines))

    def test_filling_names_the_field_and_what_was_entered(self) -> None:
        dialogue = FormDialogue(1, "d", FORM)
        self.assertEqual(dialogue.prompt, "1 of 6: Your name (text, 2 to 9 characters, required)")
        said = [answered(dialogue, text) for text in ("Ada\u202e", "", "", "2", "", "yes")][-1]
        self.assertEqual(said[:-1], ["name = Ada\\u202e", "age = 36", "color = green", "tags = red", "sure = yes"])
        self.assertEqual((dialogue.prompt, said[-1]), ("type yes to send this", "type yes to send this"))

    def test_choices_are_named_where_they_are_asked_for(self) -> None:
        dialogue = FormDialogue(1, "d", FORM)
        prompts = [answered(dialogue, text)[-1] for text in ("Ada", "", "", "2")]
        self.assertEqual(prompts[2], "4 of 6: color (one of red, green)")
        tags = "5 of 6: tags (any of red, green, with commas between them, at most 1 of them, by default red)"
        self.assertEqual(prompts[3], tags)

    def test_form_without_fields_is_agreed_to(self) -> None:
        dialogue = FormDialogue(1, "d", Form(message="Go on?"))
        self.assertEqual(dialogue.begin(), [OTHERWISE, "type yes to agree"])
        self.assertEqual(sending_words(Form(message="Go on?")), "Tell the server that you agree to")

    def test_list_shows_the_form_and_how_to_answer(self) -> None:
        view = msgspec.structs.replace(VIEW, form=FORM, tool="elicitation/create")
        listed = listing([view], 140.0)
        self.assertEqual(listed.whole, [view])
        self.assertEqual(listed.lines[1:3], ["   | Who are you?", "   | Please\\x1b[2J"])
        self.assertNotIn("cannot be undone", "\n".join(listed.lines))
        self.assertEqual(how_to_approve(view), "to fill it in: ironcurtain answer 7; to decline: ironcurtain deny 7")
