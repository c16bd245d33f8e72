"""Forms of servers: every type of field, and what is refused."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.escalation.form_reading import FIELDS, MESSAGE_LIMIT, TEXT_LIMIT, WHOLE_LIMIT, RefusedForm, read_form
from ironcurtain.escalation.form_values import Choice, Field
from ironcurtain.escalation.forms import Form

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=10), inner, max_size=3),
    max_leaves=10,
)
SCHEMAS = st.dictionaries(
    st.sampled_from(("type", "enum", "oneOf", "anyOf", "items", "title", "default", "format", "minimum", "enumNames")),
    JSON | st.sampled_from(("string", "array", "integer", "boolean")),
)


def asking(message: str = "Please", required: Any = (), **properties: Any) -> dict[str, Any]:
    """:returns: the parameters of a form."""
    return with_fields(properties, message, required)


def with_fields(properties: dict[str, Any], message: str = "Please", required: Any = ()) -> dict[str, Any]:
    """:returns: the parameters of a form."""
    schema = {"type": "object", "properties": properties, "required": list(required)}
    return {"message": message, "requestedSchema": schema}


class SchemaTests(SynchronousTestCase):
    def field(self, schema: Any) -> Field:
        return read_form(asking(x=schema)).fields[0]

    def refused(self, params: dict[str, Any]) -> str:
        return str(self.assertRaises(RefusedForm, read_form, params))

    def test_texts_have_lengths_and_formats(self) -> None:
        schema = {"type": "string", "title": "T", "description": "D", "minLength": 1, "maxLength": 5, "format": "email"}
        expected = Field(name="x", kind="text", title="T", description="D", least=1, most=5, format="email")
        self.assertEqual(self.field(schema), expected)

    def test_texts_are_bounded_together_as_what_their_characters_stand_for(self) -> None:
        for character, letters in (("\ufdfa", 18), ("\u3300", 5), ("\u0344", 2), ("a", 1)):
            most = (WHOLE_LIMIT - 100) // letters // TEXT_LIMIT
            fields = {f"x{n}": {"type": "string", "title": character * TEXT_LIMIT} for n in range(most)}
            read_form(with_fields(fields, "x"))
            fields["more"] = {"type": "string", "description": character * TEXT_LIMIT}
            self.assertIn(f"there may be {WHOLE_LIMIT}", self.refused(with_fields(fields, "x")))
        self.assertIn("letters", self.refused(asking("\ufdfa" * MESSAGE_LIMIT)))

    def test_numbers_have_bounds_and_defaults(self) -> None:
        schema = {"type": "integer", "minimum": 1, "maximum": 5, "default": 3}
        self.assertEqual(self.field(schema), Field(name="x", kind="integer", least=1, most=5, default=3))
        self.assertEqual(self.field({"type": "number", "default": 0.5}), Field(name="x", kind="number", default=0.5))

    def test_booleans_have_defaults(self) -> None:
        self.assertEqual(
            self.field({"type": "boolean", "default": True}), Field(name="x", kind="boolean", default=True)
        )

    def test_choices_have_titles_in_every_spelling(self) -> None:
        two = (Choice("a", "A"), Choice("b", "B"))
        titled = [{"const": "a", "title": "A"}, {"const": "b", "title": "B"}]
        one = Field(name="x", kind="choice", choices=two)
        self.assertEqual(self.field({"type": "string", "oneOf": titled}), one)
        self.assertEqual(self.field({"type": "string", "enum": ["a", "b"], "enumNames": ["A", "B"]}), one)
        plain = Field(name="x", kind="choice", choices=(Choice("a"), Choice("b")), default="b")
        self.assertEqual(self.field({"type": "string", "enum": ["a", "b"], "default": "b"}), plain)
        several = Field(name="x", kind="choices", choices=two, least=1, most=2, default=["a"])
        bounds = {"minItems": 1, "maxItems": 2, "default": ["a"]}
        self.assertEqual(self.field({"type": "array", "items": {"anyOf": titled}, **bounds}), several)
        untitled = self.field({"type": "array", "items": {"type": "string", "enum": ["a"]}})
        self.assertEqual(untitled, Field(name="x", kind="choices", choices=(Choice("a"),)))

    def test_optional_values_of_python_are_not_required(self) -> None:
        for schema in ({"anyOf": [{"type": "integer"}, {"type": "null"}], "title": "X"}, {"type": ["integer", "null"]}):
            (field,) = read_form(asking(required=("x",), x=schema)).fields
            self.assertEqual((field.kind, field.required), ("integer", False))
        self.assertTrue(read_form(asking(required=("x",), x={"type": "integer"})).fields[0].required)

    def test_default_that_does_not_fit_is_left_out(self) -> None:
        self.assertIsNone(self.field({"type": "integer", "maximum": 5, "default": 6}).default)

    def test_number_without_a_place_in_a_float_is_left_out(self) -> None:
        for kind in ("integer", "number"):
            field = self.field({"type": kind, "minimum": -(10**400), "maximum": 10**400, "default": 10**400})
            self.assertEqual((field.least, field.most, field.default), (None, None, None))

    def test_what_no_form_can_ask_is_refused(self) -> None:
        for schema in ({"type": "object"}, {"type": "array", "items": {"type": "string"}}, {}, 7, {"enum": [1, 2]}):
            self.assertIn("the field x", self.refused(asking(x=schema)))
        self.assertIn("at most 1000 characters", self.refused(asking(x={"type": "string", "title": "a" * 1001})))
        self.assertIn("fields", self.refused(with_fields({f"x{n}": {"type": "boolean"} for n in range(FIELDS + 1)})))
        self.assertIn("200", self.refused(asking(x={"type": "string", "enum": [str(n) for n in range(201)]})))
        self.assertIn("message", self.refused({"message": "a" * 4001}))
        self.assertIn("no mode", self.refused({"message": "m", "mode": "voice\x1b"}))

    def test_form_without_fields_is_a_message(self) -> None:
        self.assertEqual(read_form({"message": "Go on?", "requestedSchema": {}}), Form(message="Go on?"))

    @given(st.dictionaries(st.sampled_from(("message", "mode", "url", "requestedSchema")), JSON))
    def test_any_parameters_give_a_form_or_a_refusal(self, params: dict[str, Any]) -> None:
        try:
            read_form(params)
        except RefusedForm:
            return

    @given(SCHEMAS)
    def test_any_schema_gives_a_field_or_a_refusal(self, schema: dict[str, Any]) -> None:
        try:
            read_form(asking(x=schema))
        except RefusedForm:
            return


class SecretTests(SynchronousTestCase):
    """Forms that ask for secrets, by any of their words."""

    def asks(self, name: str = "value", message: str = "m", **schema: Any) -> bool:
        """:returns: whether a form counts as one that asks for a secret."""
        try:
            read_form(with_fields({name: {"type": "string", **schema}}, message))
        except RefusedForm as e:
            return e.secret
        return False

    def test_names_and_titles_of_secrets_are_refused(self) -> None:
        for name in (
            *("password", "userPassword", "pass_phrase", "token", "key", "apiKey", "API Key", "client_secret", "PIN"),
            *("cardNumber", "credit card", "cvv", "iban", "2fa_code", "seed phrase", "SSN", "login credentials"),
            *("Passwort", "contrase\u00f1a", "mot_de_passe", "\u043f\u0430\u0440\u043e\u043b\u044c", "\u5bc6\u7801"),
        ):
            self.assertTrue(self.asks(name), name)
            self.assertTrue(self.asks(title=name), name)

    def test_disguised_names_are_refused(self) -> None:
        for name in ("p a s s w o r d", "pass\u200bword", "p\u0430ssword", "passw0rd", "pa$$word", "P-A-S-S-W-O-R-D"):
            self.assertTrue(self.asks(name), name)

    def test_descriptions_messages_and_formats_are_read(self) -> None:
        for text in ("Your GitHub token, starting with ghp_", "Enter the PIN of your card", "the API key of the shop"):
            self.assertTrue(self.asks(description=text), text)
            self.assertTrue(self.asks(message=text), text)
        self.assertTrue(self.asks(format="password"))

    def test_harmless_words_are_accepted(self) -> None:
        for name in (
            *("email", "username", "keyboard", "issueKey", "sort key", "maxTokens", "token_type", "pinned", "zip_code"),
            *(
                "code",
                "seed",
                "compass",
                "secretary",
                "tokenizer",
                "passenger",
                "primary key",
                "\u0441\u0441\u044b\u043b\u043a\u0430",
            ),
        ):
            self.assertFalse(self.asks(name), name)
            self.assertFalse(self.asks(description=f"The {name}."), name)

    def test_choices_may_be_about_secrets(self) -> None:
        self.assertFalse(self.asks("token", enum=["a", "b"]))
        read_form(asking("Use a token?", agreed={"type": "boolean"}))

    def test_numbers_may_not(self) -> None:
        self.assertRaises(RefusedForm, read_form, asking(pin={"type": "integer"}))


class AddressTests(SynchronousTestCase):
    def test_address_is_shown_with_its_host(self) -> None:
        form = read_form({"mode": "url", "message": "m", "url": "https://Example.COM:8443/login?x=1"})
        self.assertEqual(form, Form(message="m", url="https://Example.COM:8443/login?x=1", host="example.com"))
        self.assertEqual(read_form({"mode": "url", "message": "m", "url": "http://127.0.0.1:99/"}).host, "127.0.0.1")

    def test_unclear_addresses_are_refused(self) -> None:
        for url in (
            *(
                "http://example.com/",
                "javascript:alert(1)",
                "file:///etc/passwd",
                "https://good.com@evil.com/",
                None,
                7,
            ),
            *("https://evil.com\\@good.com/", "https://ex\u0430mple.com/", "https://a b/", "https://a/" + "x" * 2000),
        ):
            self.assertRaises(RefusedForm, read_form, {"mode": "url", "message": "m", "url": url})
