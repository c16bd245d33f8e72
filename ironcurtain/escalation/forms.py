"""
Forms: what an MCP server asks a person for, with a type for each value.

A form is one message with fields, or an address that the person opens in a browser.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from ironcurtain.errors import UsageError
from ironcurtain.escalation.form_values import SHOWN_LIMIT, Field, FieldError, check_value, read_choice, read_text
from ironcurtain.text.display import one_line


class FormError(UsageError):
    """Values do not fit a form: one sentence for each field that is wrong."""

    def __init__(self, faults: Sequence[tuple[str, str]]) -> None:
        super().__init__("; ".join(f"{one_line(name, SHOWN_LIMIT)}: {why}" for name, why in faults))


class Form(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """
    What a server asks a person.

    :param url: an address to open in a browser, in place of fields.
    :param host: the address's host, as every program reads it.
    """

    message: str
    fields: tuple[Field, ...] = ()
    url: str = ""
    host: str = ""

    def field(self, name: str) -> Field | None:
        """:returns: the field with a name."""
        return next((each for each in self.fields if each.name == name), None)


def check_answer(form: Form, content: Mapping[str, Any]) -> dict[str, Any]:
    """
    Check the values of a whole form.

    :returns: the values, with defaults for those that are missing.
    :raises FormError: something does not fit.
    """
    faults = [(name, "the form has no such field") for name in content if form.field(name) is None]
    values: dict[str, Any] = {}
    for asked in form.fields:
        try:
            value = content.get(asked.name)
            value = read_text(asked, "") if value is None else check_value(asked, value)
        except FieldError as e:
            faults.append((asked.name, str(e)))
        else:
            if value is not None:
                values[asked.name] = value
    if faults:
        raise FormError(faults)
    return values


def read_words(form: Form, words: Iterable[str]) -> dict[str, Any]:
    """
    Read ``NAME=VALUE`` words. A field with several choices may be named several times.

    :raises FormError: a word is no such pair, or its value does not fit.
    """
    given: dict[str, list[str]] = {}
    faults: list[tuple[str, str]] = []
    for word in words:
        name, equals, text = word.partition("=")
        asked = form.field(name)
        if not equals:
            faults.append((word, "write it as NAME=VALUE"))
        elif asked is None:
            faults.append((name, "the form has no such field"))
        elif name in given and asked.kind != "choices":
            faults.append((name, "it is given twice"))
        else:
            given.setdefault(name, []).append(text)
    values: dict[str, Any] = {}
    for name, texts in given.items():
        asked = form.field(name)
        try:
            if asked is not None:
                values[name] = read_text(asked, texts[0]) if len(texts) == 1 else _several(asked, texts)
        except FieldError as e:
            faults.append((name, str(e)))
    if faults:
        raise FormError(faults)
    return {name: value for name, value in values.items() if value is not None}


class Filling(msgspec.Struct):
    """A form that a person fills in, field by field."""

    form: Form
    values: dict[str, Any] = msgspec.field(default_factory=dict)
    at: int = 0
    """Position of the current field; after the last one, everything is filled in."""

    @property
    def current(self) -> Field | None:
        """The field whose value is next; ``None`` once all were asked."""
        return self.form.fields[self.at] if self.at < len(self.form.fields) else None

    def enter(self, text: str) -> None:
        """
        Take the text of the current field, and go to the next.

        :raises FieldError: it does not fit; the field stays the current one.
        """
        if (asked := self.current) is not None:
            value = read_text(asked, text)
            self.values.pop(asked.name, None)
            if value is not None:
                self.values[asked.name] = value
            self.at += 1

    def back(self) -> None:
        """Go to the field before."""
        self.at = max(self.at - 1, 0)


def _several(asked: Field, texts: Iterable[str]) -> list[str]:
    chosen: list[str] = check_value(asked, [read_choice(asked, text) for text in texts])
    return chosen
