"""Convert what was parsed of TOML and JSON to typed values, with errors that name file, line and field."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

if TYPE_CHECKING:
    from ironcurtain.home.lines import Place

T = TypeVar("T")


def convert(
    source: str, value: Any, type_: type[T] | Any, text: str = "", place: Place = (), *, strict: bool = True
) -> T:
    """
    Check a parsed value and convert it to a type.

    :param text: the TOML or JSON source, to find the line of an error.
    :param place: path of the value in the file.
    :param strict: ``False`` for a text that may represent a number or a truth value.
    :raises ConfigurationError: it does not match the type.
    """
    try:
        converted: T = msgspec.convert(value, type_, strict=strict)
    except msgspec.ValidationError as e:
        from ironcurtain.home.faults import refused

        raise refused(source, value, type_, text, place, str(e)) from None
    return converted


def refuse_zeros(source: str, value: Any, text: str = "", place: Place = ()) -> None:
    """
    :param value: what was parsed of a file.
    :param text: as for :func:`convert`, with ``place``.
    :raises ConfigurationError: a text in it has a character that no path, variable or argument of a program can have.
    """
    if isinstance(value, str) and "\0" in value:
        from ironcurtain.home.faults import wrong

        raise wrong(source, "has a zero character, which neither paths nor programs take", text, place)
    steps = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for step, inner in steps:
        refuse_zeros(source, step, text, place)
        refuse_zeros(source, inner, text, (*place, step))


def check_version(source: str, value: Any, newest: int, text: str = "") -> None:
    """
    :param value: the parsed file; a missing ``version`` means 1.
    :param text: the TOML source.
    :raises ConfigurationError: the file's format version is too new.
    """
    version = value.get("version", 1) if isinstance(value, dict) else 1
    if type(version) is int and 1 <= version <= newest:
        return
    from ironcurtain.home.faults import wrong

    detail = f"must be a number from 1 to {newest}"
    if type(version) is int and version > newest:
        detail = f"version {version} is newer than {newest}, the newest supported version"
    raise wrong(source, detail, text, ("version",))
