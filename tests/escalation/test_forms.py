"""Forms: what fits each field, typed by a person or given by a program."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.escalation.form_values import Choice, Field, FieldError, check_value, read_text
from ironcurtain.escalation.forms import Filling, Form, FormError, check_answer, read_words

COLORS = (Choice("red", "Red"), Choice("green", "Green"), Choice("a,b", "Both"))
NAME = Field(name="name", kind="text", required=True, least=2, most=10)
AGE = Field(name="age", kind="integer", least=0, most=150)
COLOR = Field(name="color", kind="choice", choices=COLORS)
TAGS = Field(name="tags", kind="choices", choices=COLORS, least=1, most=2)
AGREED = Field(name="agreed", kind="boolean", default=False)
FORM = Form(message="Please", fields=(NAME, AGE, COLOR, TAGS, AGREED))


class FieldTests(SynchronousTestCase):
    def reads(self, field: Field, text: str) -> Any:
        return read_text(field, text)

    def refuses(self, field: Field, text: str) -> str:
        return str(self.assertRaises(FieldError, read_text, field, text))

    def test_text_keeps_its_blanks_within_its_lengths(self) -> None:
        self.assertEqual(self.reads(NAME, " Ada "), " Ada ")
        self.assertEqual(self.refuses(NAME, "A"), "it has 1 character: write from 2 to 10 characters")
        self.assertEqual(self.refuses(NAME, "A" * 11), "it has 11 characters: write from 2 to 10 characters")

    def test_missing_value_of_required_field_is_refused_and_else_the_default(self) -> None:
        self.assertEqual(self.refuses(NAME, "  "), "it is required")
        self.assertIsNone(self.reads(AGE, ""))
        self.assertIs(self.reads(AGREED, ""), False)

    def test_numbers_within_bounds_are_read(self) -> None:
        self.assertEqual(self.reads(AGE, " 36 "), 36)
        for text in ("36.5", "151", "-1", "1_0", "\u0661", "one", "9" * 200):
            self.refuses(AGE, text)
        self.assertEqual(self.refuses(AGE, "x"), "write a whole number from 0 to 150")
        free = Field(name="x", kind="number")
        self.assertEqual((self.reads(free, "1e3"), self.reads(free, "7")), (1000.0, 7))
        for text in ("nan", "inf", "1e999"):
            self.refuses(free, text)

    def test_integers_keep_all_their_digits(self) -> None:
        self.assertEqual(self.reads(Field(name="x", kind="number"), str(2**70)), 2**70)

    def test_booleans_are_yes_or_no(self) -> None:
        self.assertEqual([self.reads(AGREED, text) for text in ("Yes", "y", "true", "no", "OFF")], [1, 1, 1, 0, 0])
        self.assertEqual(self.refuses(AGREED, "1"), "write yes or no")

    def test_choices_are_named_by_value_title_or_position(self) -> None:
        self.assertEqual(
            [self.reads(COLOR, text) for text in ("red", "GREEN", " Both", "2")], ["red", "green", "a,b", "green"]
        )
        self.assertEqual(self.refuses(COLOR, "blue"), "write one of: red, green, a,b")
        for text in ("0", "4", "red,green"):
            self.refuses(COLOR, text)

    def test_several_choices_are_separated_by_commas(self) -> None:
        self.assertEqual(self.reads(TAGS, "red, 2, Red"), ["red", "green"])
        self.assertEqual(self.reads(TAGS, "a,b"), ["a,b"])
        self.assertEqual(self.refuses(TAGS, "red,green,Both"), "choose from 1 to 2 of them")

    def test_formats_are_checked(self) -> None:
        for kind, right, wrong in (
            ("email", "ada@example.com", "ada@"),
            ("email", "a@b.c", "a b@c.d"),
            ("uri", "https://example.com/x", "example.com"),
            ("date", "2026-02-28", "2026-02-30"),
            ("date", "2026-02-28", "20260228"),
            ("date-time", "2026-02-28T10:00:00Z", "2026-02-28"),
            ("date-time", "2026-02-28t10:00:00+01:00", "2026-02-28T10:00:00"),
        ):
            field = Field(name="x", kind="text", format=kind)
            self.assertEqual(self.reads(field, right), right)
            self.assertIn("such as", self.refuses(field, wrong))
        self.assertEqual(self.reads(Field(name="x", kind="text", format="color"), "red"), "red")

    def test_patterns_are_checked_unless_they_are_left_to_the_server(self) -> None:
        name = Field(name="x", kind="text", pattern="^[a-z]{2,}$")
        self.assertEqual(self.reads(name, "ada"), "ada")
        self.assertEqual(self.refuses(name, "Ada"), "write a text that matches ^[a-z]{2,}$")
        with self.assertRaises(FieldError):
            check_value(name, "a")
        self.assertEqual(self.reads(Field(name="x", kind="text", pattern="^(?!root$)"), "root"), "root")

    def test_values_that_look_like_secrets_are_refused(self) -> None:
        free = Field(name="note", kind="text")
        for text in ("ghp_" + "a1B2" * 9, "4111 1111 1111 1111", "password=hunter2hunter2"):
            self.assertIn("looks like a secret", self.refuses(free, text))
        self.assertIn("secret", self.refuses(Field(name="n", kind="integer"), "4111111111111111"))

    @given(st.sampled_from(FORM.fields), st.text())
    def test_any_text_gives_a_checked_value_or_an_error(self, field: Field, text: str) -> None:
        try:
            value = read_text(field, text)
        except FieldError:
            return
        if value is not None:
            self.assertEqual(check_value(field, value), value)

    @given(
        st.sampled_from(FORM.fields),
        st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.lists(st.text() | st.integers()),
    )
    def test_any_json_value_is_kept_or_refused(self, field: Field, value: Any) -> None:
        try:
            fits = check_value(field, value)
        except FieldError:
            return
        self.assertEqual(
            fits if field.kind != "choices" else set(fits), value if field.kind != "choices" else set(value)
        )


class FormTests(SynchronousTestCase):
    def test_answer_has_defaults_and_no_missing_optional_values(self) -> None:
        self.assertEqual(check_answer(FORM, {"name": "Ada", "age": None}), {"name": "Ada", "agreed": False})

    def test_every_wrong_field_is_named(self) -> None:
        error = self.assertRaises(FormError, check_answer, FORM, {"name": 7, "age": "x", "other\x1b": 1})
        self.assertEqual(
            str(error),
            "other\\x1b: the form has no such field; name: it must be a text; age: it must be a whole number",
        )

    def test_words_give_values(self) -> None:
        values = read_words(FORM, ["name=Ada=x", "age=36", "tags=red", "tags=2", "agreed=yes"])
        self.assertEqual(values, {"name": "Ada=x", "age": 36, "tags": ["red", "green"], "agreed": True})
        self.assertEqual(read_words(FORM, ["tags=red,green", "age="]), {"tags": ["red", "green"]})

    def test_wrong_words_are_named(self) -> None:
        error = self.assertRaises(FormError, read_words, FORM, ["name", "age=x", "name=Ada", "name=Bob", "y=1"])
        self.assertEqual(
            str(error),
            "name: write it as NAME=VALUE; name: it is given twice; y: the form has no such field; "
            "age: write a whole number from 0 to 150",
        )

    def test_filling_goes_on_with_a_value_that_fits_and_back_again(self) -> None:
        filling = Filling(FORM)
        self.assertRaises(FieldError, filling.enter, "")
        self.assertIs(filling.current, NAME)
        for text in ("Ada", "36", "", "red"):
            filling.enter(text)
        filling.back()
        filling.enter("green")
        self.assertIs(filling.current, AGREED)
        filling.enter("")
        self.assertIsNone(filling.current)
        self.assertEqual(filling.values, {"name": "Ada", "age": 36, "tags": ["green"], "agreed": False})
        self.assertEqual(check_answer(FORM, filling.values), filling.values)
