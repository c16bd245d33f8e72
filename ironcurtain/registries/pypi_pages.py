"""
Write the list of a project's files for a client: in JSON, in HTML, or what ``poetry`` asks for.

Files that are too young are not left out but marked as yanked, with the reason: then resolvers choose older versions by
themselves and say why, and a version that was asked for by its number is refused where the reason is shown.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from html import escape
from typing import Any, Final

import msgspec

from ironcurtain.registries.pypi_index import JSON, ProjectFile
from ironcurtain.registries.pypi_paths import same_version

HTML: Final = "text/html"
"""The media type that every client knows."""

V1_HTML: Final = "application/vnd.pypi.simple.v1+html"
"""The media type of the same pages, with their version (PEP 691)."""

_FORMATS: Final = {
    JSON: JSON,
    "application/vnd.pypi.simple.latest+json": JSON,
    V1_HTML: V1_HTML,
    "application/vnd.pypi.simple.latest+html": V1_HTML,
    HTML: HTML,
    "text/*": HTML,
    "*/*": HTML,
}
"""What is sent where a client accepts a media type."""

Withheld = Callable[[ProjectFile], str]
"""Returns why a file must not be installed yet; empty if it may."""

Address = Callable[[ProjectFile], str]
"""Returns the address at which the client finds a file."""


def chosen_format(accept: Iterable[str]) -> str:
    """
    :param accept: values of the Accept header.
    :returns: the media type to answer with: what the client wants most, and of equals what it names first.
    """
    best, weight = HTML, 0.0
    for choice in ",".join(accept).split(","):
        media, *parameters = (part.strip().lower() for part in choice.split(";"))
        quality = _quality(parameters)
        if media in _FORMATS and quality > weight:
            best, weight = _FORMATS[media], quality
    return best


def write_json(project: str, files: Sequence[ProjectFile], withheld: Withheld, address: Address) -> bytes:
    """:returns: the list as JSON (PEP 691, 700, 714)."""
    page = {
        "meta": {"api-version": "1.1"},
        "name": project,
        "versions": list(dict.fromkeys(file.release.version for file in files)),
        "files": [_json_file(file, withheld(file), address(file)) for file in files],
    }
    return msgspec.json.encode(page)


def write_html(project: str, files: Sequence[ProjectFile], withheld: Withheld, address: Address) -> bytes:
    """:returns: the list as HTML (PEP 503, 592, 658, 714)."""
    title = f"<title>Links for {escape(project)}</title>"
    head = f'<!DOCTYPE html>\n<html><head><meta name="pypi:repository-version" content="1.1">{title}</head><body>\n'
    links = [_link(file, withheld(file), address(file)) for file in files]
    return "".join([head, *links, "</body></html>\n"]).encode()


def write_release(
    project: str, version: str, files: Iterable[ProjectFile], withheld: Withheld, address: Address
) -> bytes | None:
    """
    :param version: as the client writes it.
    :returns: what PyPI's own API says of a version, as far as ``poetry`` needs it; ``None`` if no file has the version.
        The dependencies are not in it: then ``poetry`` reads them from the files.
    """
    urls = [
        _release_file(file, withheld(file), address(file))
        for file in files
        if same_version(file.release.version, version)
    ]
    if not urls:
        return None
    yanked = all(url["yanked"] for url in urls)
    info = {
        "name": project,
        "version": version,
        "summary": "",
        "requires_dist": None,
        "requires_python": urls[0]["requires_python"],
        "yanked": yanked,
        "yanked_reason": urls[0]["yanked_reason"] if yanked else None,
    }
    return msgspec.json.encode({"info": info, "urls": urls})


def _quality(parameters: list[str]) -> float:
    for parameter in parameters:
        name, _, value = parameter.partition("=")
        if name.strip() == "q":
            try:
                return float(value)
            except ValueError:
                return 0.0
    return 1.0


def _yanked(file: ProjectFile, reason: str) -> str | bool:
    return reason or (file.yanked and (file.yanked_reason or True))


def _sha256(file: ProjectFile) -> str:
    assert file.release.digest is not None  # read_index leaves out the others
    return file.release.digest.value.hex()


def _json_file(file: ProjectFile, reason: str, address: str) -> dict[str, Any]:
    known: dict[str, Any] = {
        "filename": file.filename,
        "url": address,
        "hashes": {"sha256": _sha256(file)},
        "requires-python": file.requires_python or None,
        "yanked": _yanked(file, reason),
    }
    if file.metadata is not None:  # by its older name, dist-info-metadata, pip before 23.1 fails (PEP 714)
        known["core-metadata"] = {"sha256": file.metadata.value.hex()}
    if file.size is not None:
        known["size"] = file.size
    if file.uploaded:
        known["upload-time"] = file.uploaded
    return known


def _link(file: ProjectFile, reason: str, address: str) -> str:
    attributes = {"href": f"{address}#sha256={_sha256(file)}"}
    if file.requires_python:
        attributes["data-requires-python"] = file.requires_python
    if file.metadata is not None:
        digest = f"sha256={file.metadata.value.hex()}"
        attributes |= {"data-core-metadata": digest, "data-dist-info-metadata": digest}
    if reason or file.yanked:
        attributes["data-yanked"] = reason or file.yanked_reason
    written = " ".join(f'{name}="{escape(value)}"' for name, value in attributes.items())
    return f"<a {written}>{escape(file.filename)}</a><br>\n"


def _release_file(file: ProjectFile, reason: str, address: str) -> dict[str, Any]:
    yanked = _yanked(file, reason)
    return {
        "filename": file.filename,
        "packagetype": "bdist_wheel" if file.filename.endswith(".whl") else "sdist",
        "digests": {"sha256": _sha256(file)},
        "requires_python": file.requires_python or None,
        "size": file.size,
        "upload_time_iso_8601": file.uploaded or None,
        "url": address,
        "yanked": bool(yanked),
        "yanked_reason": yanked if isinstance(yanked, str) else None,
    }
