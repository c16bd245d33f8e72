"""
Read the form that an MCP server sent, and refuse what no person should fill in.

A server must not ask for a secret in a form (revision 2025-11-25, elicitation): what is typed passes through programs
and records, and a server could ask in another's name. Its words give such a form away; one that hides what it asks for
cannot be told from others, so values that look like secrets are refused as well.
"""

from __future__ import annotations

import re
import sys
import unicodedata
from collections.abc import Iterator, Mapping
from typing import Any

from ironcurtain.errors import UsageError
from ironcurtain.escalation.form_values import Choice, Field, FieldError, Kind, check_value
from ironcurtain.escalation.forms import Form
from ironcurtain.http.urls import UnclearAddress, read_web_address
from ironcurtain.secrets.rules import is_secret_name
from ironcurtain.text.display import has_hidden_text, one_line, shown_only

MESSAGE_LIMIT = 4000
"""Maximum length in characters of a form's message."""

FIELDS = 32
"""Maximum number of fields of a form."""

CHOICES = 200
"""Maximum number of choices of a field."""

TEXT_LIMIT, NAME_LIMIT, URL_LIMIT = 1000, 100, 2000
"""Maximum length in characters of a title or description, of a name, and of an address."""

WHOLE_LIMIT = 20_000
"""
Maximum length in characters of everything a form says, each character taken apart: one can stand for 18 letters, and
all are searched for words.
"""

LOOPBACK = ("127.0.0.1", "::1", "localhost")
"""Hosts to which an address may lead without encryption."""

_WORDS = re.compile(
    r"(?<![a-z0-9])(?:"
    r"pass ?words?|pass ?codes?|pass ?phrases?|passwd|credentials?|secrets?|(?:api|access|private|secret|ssh|gpg|pgp|"
    r"encryption|signing|license|recovery|account|auth|authentication|your) ?keys?|"
    r"(?:access|auth|api|bearer|refresh|session|personal|security|authentication|oauth|id|bot|your) ?tokens?|"
    r"token(?! ?(?:counts?|limits?|types?|budget|name|usage|s)(?![a-z0-9]))|"
    r"(?:one ?time|verification|security|authentication|two ?factor|2fa|mfa|sms|backup|recovery) ?(?:codes?|pass\w*)|"
    r"otp|totp|cvv2?|cvc2?|(?:your|the|card|sim) ?pin|pin ?(?:code|number|of)|card ?(?:number|no|nr)|credit ?card|"
    r"debit ?card|iban|account ?number|routing ?number|ssn|social ?security ?(?:number|no)|"
    r"(?:seed|recovery|mnemonic|secret) ?(?:phrase|words)|mnemonic|"
    r"passwort|kennwort|geheimzahl|zugangsdaten|mot de passe|contrasena|senha|parola|wachtwoord|haslo|heslo|losenord|"
    r"adgangskode|salasana|jelszo|sifre|\u043f\u0430\u0440\u043e\u043b\u044c|\u5bc6\u7801|\u5bc6\u78bc|"
    r"\u30d1\u30b9\u30ef\u30fc\u30c9|\ube44\ubc00\ubc88\ud638"
    r")(?![a-z0-9])"
)
"""What people call secrets, in plain letters and with one blank between words."""

_ALONE = frozenset(("key", "keys", "token", "tokens", "pass", "pin", "cookie", "auth"))
"""What is a secret if it is all that a name or a title says, or its last word is ``pin``."""

_LEET = str.maketrans("0134578@$", "oieastbas")


class RefusedForm(UsageError):
    """
    A form that nobody is asked to fill in.

    :param secret: whether it asks for a secret.
    """

    def __init__(self, why: str, secret: bool = False) -> None:
        super().__init__(why)
        self.secret = secret


def read_form(params: Mapping[str, Any]) -> Form:
    """
    :param params: of ``elicitation/create``, in form mode or URL mode.
    :raises RefusedForm: it asks for a secret, is too long, or is nothing that a person can answer.
    """
    message, mode = params.get("message", ""), params.get("mode", "form")
    if not isinstance(message, str) or len(message) > MESSAGE_LIMIT:
        raise RefusedForm(f"its message must be a text of at most {MESSAGE_LIMIT} characters")
    if mode == "url":
        return _address(message, params.get("url"))
    if mode != "form":
        raise RefusedForm(f"there is no mode {one_line(str(mode), 40)}: there are form and url")
    schema = params.get("requestedSchema", {})
    properties = schema.get("properties", {}) if isinstance(schema, Mapping) else None
    required = schema.get("required", []) if isinstance(schema, Mapping) else None
    if not isinstance(properties, Mapping) or not isinstance(required, list):
        raise RefusedForm("requestedSchema must be an object with properties")
    if len(properties) > FIELDS:
        raise RefusedForm(f"it has {len(properties)} fields: there may be {FIELDS}")
    fields = tuple(_field(name, each, name in required) for name, each in properties.items())
    texts = (message, *(text for asked in fields for text in (asked.name, asked.title, asked.description)))
    if (length := sum(len(unicodedata.normalize("NFKD", text)) for text in texts)) > WHOLE_LIMIT:
        raise RefusedForm(f"its texts have {length} letters: there may be {WHOLE_LIMIT}")
    for asked in fields:
        if (why := secret_words(asked)) is not None:
            raise RefusedForm(f"the field {one_line(asked.name, NAME_LIMIT)} asks for a secret ({why})", secret=True)
    free = any(asked.kind in ("text", "number", "integer") for asked in fields)
    if free and (found := _said(message)) is not None:
        raise RefusedForm(f"its message asks for a secret ({found})", secret=True)
    return Form(message=message, fields=fields)


def secret_words(asked: Field) -> str | None:
    """:returns: the words by which a field asks for a secret; ``None``: it does not. One with choices never does."""
    if asked.kind not in ("text", "number", "integer"):
        return None
    if _plain(asked.format) in ("password", "secret", "token", "credit card"):
        return f"its format is {one_line(asked.format, NAME_LIMIT)}"
    for text in (asked.name, asked.title):
        words = _plain(text).split()
        if " ".join(words) in _ALONE or words[-1:] == ["pin"]:
            return words[-1]
        if is_secret_name(text) or is_secret_name("_".join(words)):
            return one_line(text, NAME_LIMIT)
    if (found := _said(f"{asked.name}\n{asked.title}\n{asked.description}")) is not None:
        return found
    if has_hidden_text(asked.name) or has_hidden_text(asked.title):
        return "it has letters that look like others, or cannot be seen"
    return None


def _said(text: str) -> str | None:
    """:returns: the first words in a text that mean a secret."""
    spellings = dict.fromkeys((text, text.casefold(), leet := text.translate(_LEET), leet.casefold()))
    for plain in dict.fromkeys(map(_plain, spellings)):
        if (found := _WORDS.search(plain)) is not None:
            return found[0]
    return None


def _plain(text: str) -> str:
    """:returns: a text in lower case, without accents and invisible characters, its words separated by one blank."""
    letters = unicodedata.normalize("NFKD", shown_only(re.sub(r"\s", " ", text)))
    letters = "".join(c for c in letters if not unicodedata.combining(c))
    parted = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|[\W_]+", " ", letters)
    joined = re.sub(r"(?<![^\s])(\w(?: \w){3,})(?![^\s])", lambda found: found[1].replace(" ", ""), parted)
    return unicodedata.normalize("NFC", " ".join(joined.split()).casefold())


def _address(message: str, url: Any) -> Form:
    if not isinstance(url, str) or len(url) > URL_LIMIT:
        raise RefusedForm(f"url must be an address of at most {URL_LIMIT} characters")
    try:
        address = read_web_address(url)
    except UnclearAddress as e:
        raise RefusedForm(f"its address is not clear: {e}") from None
    if address.authority.user:
        raise RefusedForm("its address has a user name before the host")
    if address.scheme != "https" and address.host.name not in LOOPBACK:
        raise RefusedForm(f"its address leads to {one_line(address.host.name)} without encryption")
    return Form(message=message, url=url, host=address.host.name)


def _field(name: str, schema: Any, required: bool) -> Field:
    shown = one_line(name, NAME_LIMIT)
    if len(name) > NAME_LIMIT or not isinstance(schema, Mapping):
        raise RefusedForm(f"the field {shown} has no schema, or too long a name")
    schema, optional = _without_null(schema)
    kind, choices = _kind(shown, schema)
    items = kind == "choices"
    bounds = {"text": ("minLength", "maxLength"), "choices": ("minItems", "maxItems")}.get(kind, ("minimum", "maximum"))
    asked = Field(
        name=name,
        kind=kind,
        title=_text(shown, schema, "title"),
        description=_text(shown, schema, "description"),
        required=required and not optional,
        least=_bound(schema.get(bounds[0])),
        most=_bound(schema.get(bounds[1])),
        format=_text(shown, schema, "format") if kind == "text" else "",
        pattern=_text(shown, schema, "pattern") if kind == "text" else "",
        choices=choices,
    )
    default = schema.get("default")
    if default is None or (items and not isinstance(default, list)):
        return asked
    try:
        return _with_default(asked, default)
    except FieldError:  # the server's mistake; without it the person decides
        return asked


def _with_default(asked: Field, default: Any) -> Field:
    values = {name: getattr(asked, name) for name in asked.__struct_fields__}
    return Field(**{**values, "default": check_value(asked, default)})


def _without_null(schema: Mapping[str, Any]) -> tuple[Mapping[str, Any], bool]:
    """:returns: the schema of a value that is there, and whether it may be missing (Python's optional values)."""
    for keyword in ("anyOf", "oneOf"):
        forms = schema.get(keyword)
        if isinstance(forms, list) and {"type": "null"} in forms:
            rest = [form for form in forms if form != {"type": "null"}]
            if len(rest) == 1 and isinstance(rest[0], Mapping):
                return {**{k: v for k, v in schema.items() if k != keyword}, **rest[0]}, True
    kinds = schema.get("type")
    if isinstance(kinds, list) and "null" in kinds and len(kinds) == 2:
        return {**schema, "type": next(kind for kind in kinds if kind != "null")}, True
    return schema, False


def _kind(shown: str, schema: Mapping[str, Any]) -> tuple[Kind, tuple[Choice, ...]]:
    kinds: Mapping[str, Kind] = {"number": "number", "integer": "integer", "boolean": "boolean"}
    kind = schema.get("type")
    if kind == "array" and isinstance(items := schema.get("items"), Mapping):
        if not (several := tuple(_choices(shown, items))):
            raise RefusedForm(f"the field {shown} is a list without choices, which a form cannot have")
        return "choices", several
    if choices := tuple(_choices(shown, schema)):
        return "choice", choices
    if kind == "string":
        return "text", ()
    if isinstance(kind, str) and kind in kinds:
        return kinds[kind], ()
    raise RefusedForm(f"the field {shown} is neither a text, a number, yes or no, nor a choice")


def _choices(shown: str, schema: Mapping[str, Any]) -> Iterator[Choice]:
    listed = (schema.get(word) for word in ("oneOf", "anyOf", "enum"))
    forms: list[Any] = next((each for each in listed if isinstance(each, list)), [])
    names = schema.get("enumNames")
    titles = names if isinstance(names, list) and len(names) == len(forms) else [""] * len(forms)
    if len(forms) > CHOICES:
        raise RefusedForm(f"the field {shown} has {len(forms)} choices: there may be {CHOICES}")
    for form, title in zip(forms, titles, strict=True):
        value = form
        if isinstance(form, Mapping):
            value, title = form.get("const"), form.get("title", "")
        if not isinstance(value, str) or not isinstance(title, str) or max(len(value), len(title)) > TEXT_LIMIT:
            raise RefusedForm(f"the field {shown} has a choice that is no text of at most {TEXT_LIMIT} characters")
        yield Choice(value, title)


def _text(shown: str, schema: Mapping[str, Any], name: str) -> str:
    text = schema.get(name, "")
    if not isinstance(text, str) or len(text) > TEXT_LIMIT:
        raise RefusedForm(f"{name} of the field {shown} must be a text of at most {TEXT_LIMIT} characters")
    return text


def _bound(value: Any) -> float | None:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return value if is_number and abs(value) <= sys.float_info.max else None  # a longer one cannot be shown
