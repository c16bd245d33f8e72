"""The fields of forms: what a person typed becomes a value, and values are checked however they were entered."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import date, datetime
from typing import Any, Literal

import msgspec

from ironcurtain.errors import UsageError
from ironcurtain.escalation.form_patterns import matcher
from ironcurtain.http.urls import UnclearAddress, read_host
from ironcurtain.secrets.rules import find
from ironcurtain.text.display import one_line
from ironcurtain.text.quantities import counted

VALUE_LIMIT = 16 * 1024
"""Maximum length in characters of one text."""

SHOWN_LIMIT = 80
"""Maximum number of characters of a name or a choice in a message."""

NUMBER_DIGITS = 100
"""Maximum number of characters of a number."""

Kind = Literal["text", "number", "integer", "boolean", "choice", "choices"]

YES, NO = frozenset(("yes", "y", "true", "on")), frozenset(("no", "n", "false", "off"))

_EMAIL = re.compile(r"[^\s@]+@[^\s@]+")
_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:[^\s]+")
_DATE = re.compile(r"\d{4}-\d\d-\d\d")


class FieldError(UsageError):
    """A value does not fit its field. The message says what would, without the field's name."""


class Choice(msgspec.Struct, frozen=True):
    """One of the values of a field, and its title for people."""

    value: str
    title: str = ""


class Field(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """
    A field of a form. A server wrote all texts.

    :param least: least length of a text, least number, or least number of choices; ``None`` if there is none.
    :param format: ``email``, ``uri``, ``date``, ``date-time``, or another that is shown and not checked.
    :param pattern: of JSON Schema; checked as far as
        :func:`~ironcurtain.escalation.form_patterns.matcher` can.
    """

    name: str
    kind: Kind
    title: str = ""
    description: str = ""
    required: bool = False
    default: str | int | float | bool | list[str] | None = None
    least: float | None = None
    most: float | None = None
    format: str = ""
    pattern: str = ""
    choices: tuple[Choice, ...] = ()


def read_text(asked: Field, text: str) -> Any:
    """
    :param text: as typed. Nothing but blanks means the default, or no value if the field is optional.
    :returns: the value; ``None``: no value.
    :raises FieldError: it does not fit.
    """
    if not text.strip():
        if asked.default is None and asked.required:
            raise FieldError("it is required")
        return asked.default
    return check_value(asked, _READERS[asked.kind](asked, text))


def check_value(asked: Field, value: Any) -> Any:
    """
    :param value: a JSON value.
    :returns: the value as the server gets it.
    :raises FieldError: it does not fit, or looks like a secret.
    """
    fits = _CHECKS[asked.kind](asked, value)
    for text in [str(fits)] if asked.kind in ("text", "number", "integer") else []:
        if find(text):
            raise FieldError("this looks like a secret, which no form may get: give it to the server in its settings")
    return fits


def _as_is(asked: Field, text: str) -> str:
    return text


def _read_integer(asked: Field, text: str) -> int:
    with suppress(ValueError):
        if len(text.strip()) <= NUMBER_DIGITS and text.isascii():
            return int(text.strip().replace("_", " "))
    raise FieldError(f"write {_range_words(asked, 'a whole number')}")


def _read_number(asked: Field, text: str) -> int | float:
    with suppress(FieldError):
        return _read_integer(asked, text)
    with suppress(ValueError):
        if len(text.strip()) <= NUMBER_DIGITS and text.isascii():
            return float(text.strip().replace("_", " "))
    raise FieldError(f"write {_range_words(asked, 'a number')}")


def _read_boolean(asked: Field, text: str) -> bool:
    word = text.strip().casefold()
    if word not in YES | NO:
        raise FieldError("write yes or no")
    return word in YES


def read_choice(asked: Field, text: str) -> str:
    """:returns: the choice that a text names: by its value, its title, or its position from 1."""
    for word in dict.fromkeys((text, text.strip())):
        if any(word == choice.value for choice in asked.choices):
            return word
    word = text.strip()
    titled = [c.value for c in asked.choices if word.casefold() in (c.title.casefold(), c.value.casefold())]
    if len(titled) == 1:
        return titled[0]
    if word.isascii() and word.isdecimal() and len(word) < 6 and 0 < int(word) <= len(asked.choices):
        return asked.choices[int(word) - 1].value
    raise FieldError(f"write {_choice_words(asked)}")


def _choices(asked: Field, text: str) -> list[str]:
    with suppress(FieldError):  # a choice can have a comma in it
        return [read_choice(asked, text)]
    return [read_choice(asked, word) for word in text.split(",") if word.strip()]


def _check_text(asked: Field, value: Any) -> str:
    if not isinstance(value, str):
        raise FieldError("it must be a text")
    most = min(VALUE_LIMIT if asked.most is None else asked.most, VALUE_LIMIT)
    if len(value) > most or len(value) < (asked.least or 0):
        raise FieldError(f"it has {counted(len(value), 'character')}: write {_range_words(asked, '', ' characters')}")
    try:
        value.encode()
        fits = asked.format not in _FORMATS or _FORMATS[asked.format][0](value)
    except ValueError:
        fits = False
    if not fits:
        raise FieldError(f"write {_FORMATS[asked.format][1] if asked.format in _FORMATS else 'a text'}")
    if asked.pattern and (matches := matcher(asked.pattern)) is not None and not matches(value):
        raise FieldError(f"write a text that matches {one_line(asked.pattern, SHOWN_LIMIT)}")
    return value


def _check_number(asked: Field, value: Any) -> int | float:
    whole = asked.kind == "integer"
    what = "a whole number" if whole else "a number"
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= sys.float_info.max:
        raise FieldError(f"it must be {what}")
    if whole and value != int(value):
        raise FieldError("it must be a whole number")
    if (asked.least is not None and value < asked.least) or (asked.most is not None and value > asked.most):
        raise FieldError(f"write {_range_words(asked, what)}")
    return int(value) if whole else value


def _check_boolean(asked: Field, value: Any) -> bool:
    if not isinstance(value, bool):
        raise FieldError("it must be true or false")
    return value


def _check_choice(asked: Field, value: Any) -> str:
    if not isinstance(value, str) or all(value != choice.value for choice in asked.choices):
        raise FieldError(f"it must be {_choice_words(asked)}")
    return value


def _check_choices(asked: Field, value: Any) -> list[str]:
    if not isinstance(value, list):
        raise FieldError("it must be a list")
    chosen = list(dict.fromkeys(_check_choice(asked, each) for each in value))
    if len(chosen) < (asked.least or 0) or (asked.most is not None and len(chosen) > asked.most):
        raise FieldError(f"choose {_range_words(asked, '', ' of them')}")
    return chosen


def _choice_words(asked: Field) -> str:
    shown = [one_line(choice.value, SHOWN_LIMIT) for choice in asked.choices[:10]]
    more = [f"{len(asked.choices) - 10} others"] if len(asked.choices) > 10 else []
    return f"one of: {', '.join((*shown, *more))}"


def _range_words(asked: Field, what: str, unit: str = "") -> str:
    least, most = asked.least, asked.most
    if least is not None and most is not None:
        bounds = f"from {least:g} to {most:g}{unit}"
    elif most is not None or unit == " characters":
        bounds = f"at most {VALUE_LIMIT if most is None else most:g}{unit}"
    elif least is not None:
        bounds = f"at least {least:g}{unit}"
    else:
        bounds = ""
    return f"{what} {bounds}".strip()


def _is_uri(text: str) -> bool:
    return _URI.fullmatch(text) is not None


def _is_email(text: str) -> bool:
    try:
        return _EMAIL.fullmatch(text) is not None and bool(read_host(text.rpartition("@")[2]))
    except UnclearAddress:
        return False


def _is_date(text: str) -> bool:
    return _DATE.fullmatch(text) is not None and bool(date.fromisoformat(text))


def _is_time(text: str) -> bool:
    moment = datetime.fromisoformat(text)
    return "T" in text.upper() and moment.tzinfo is not None


_FORMATS: Mapping[str, tuple[Callable[[str], bool], str]] = {
    "email": (_is_email, "an e-mail address such as ada@example.com"),
    "uri": (_is_uri, "an address such as https://example.com/"),
    "date": (_is_date, "a date such as 2026-11-27"),
    "date-time": (_is_time, "a time such as 2026-11-27T09:30:00Z"),
}
"""The formats that are checked, and what fits them."""

_READERS: Mapping[Kind, Callable[[Field, str], Any]] = {
    "text": _as_is,
    "number": _read_number,
    "integer": _read_integer,
    "boolean": _read_boolean,
    "choice": read_choice,
    "choices": _choices,
}

_CHECKS: Mapping[Kind, Callable[[Field, Any], Any]] = {
    "text": _check_text,
    "number": _check_number,
    "integer": _check_number,
    "boolean": _check_boolean,
    "choice": _check_choice,
    "choices": _check_choices,
}
