"""What a Dockerfile of a project takes: images, files of its context, and files of other machines."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase

import msgspec

_INSTRUCTION = re.compile(r"\s*(?P<name>[A-Za-z]+)\s+(?P<words>.*)", re.DOTALL)
_REMOTE = re.compile(r"[:$\\]")
"""What every address has, also one with quotes in it, and what can become one."""

_ESCAPE = re.compile(r"^\s*#\s*escape\s*=\s*[^\s\\]", re.IGNORECASE | re.MULTILINE)
_FLAG = re.compile(r"--[a-z-]+(?:=\S*)?")
_VARIABLE = re.compile(r"\$(?:\{(?P<braced>\w+)\}|(?P<bare>\w+))")


class Needs(msgspec.Struct, frozen=True):
    """
    :param images: the images that its stages stand on, in order, and those that it copies files from; as written.
    :param stages: the names of its stages, each empty where it has none.
    :param files: patterns of the files that it copies from its context; ``*`` alone is all of them.
    :param remote: what it fetches, or may fetch, from other machines by ADD.
    :param defaults: the values of its arguments before the first stage, which names of images can have.
    """

    images: tuple[str, ...]
    stages: tuple[str, ...]
    files: tuple[str, ...]
    remote: tuple[str, ...]
    defaults: Mapping[str, str] = msgspec.field(default_factory=dict)

    def named_images(self, arguments: Mapping[str, str]) -> tuple[str, ...]:
        """
        :param arguments: of the build.
        :returns: the images by their names, each once. What the build makes of other forms of variables is not known.
        """
        given = {name: arguments.get(name, value) for name, value in self.defaults.items()}

        def value(found: re.Match[str]) -> str:
            return given.get(found["braced"] or found["bare"], found[0])

        names = dict.fromkeys(_VARIABLE.sub(value, image) for image in self.images)
        stages = {"scratch", *map(str.lower, self.stages)}
        return tuple(name for name in names if name and "$" not in name and name.lower() not in stages)

    def takes(self, path: str) -> bool:
        """:returns: whether it copies a file, by its path below the context."""
        parts = path.split("/")
        return any(_fits(parts, pattern) for pattern in self.files)

    def may_take_below(self, directory: str) -> bool:
        """:returns: whether it copies anything below a directory of the context."""
        parts = directory.split("/")
        return any(_fits(parts, pattern) or _fits(parts, pattern, above=True) for pattern in self.files)


def read_needs(dockerfile: str) -> Needs:
    """:returns: what a Dockerfile takes. What it does not show is missing in its build, which then fails."""
    images, stages, files, remote = list[str](), list[str](), list[str](), list[str]()
    defaults: dict[str, str] = {}
    for name, words in _instructions(dockerfile):
        if name == "FROM":
            image, *rest = _words(words)[1] or [""]
            stages.append(rest[1] if len(rest) > 1 and rest[0].upper() == "AS" else "")
            if image.lower() not in ("scratch", *map(str.lower, stages[:-1])):
                images.append(image)
        elif name == "ARG" and not stages:
            pairs = (word.partition("=") for word in words.split())
            defaults.update((each, value.strip("\"'")) for each, _, value in pairs)
        elif name in ("COPY", "ADD"):
            flags, sources = _words(words)
            if origins := [flag.removeprefix("--from=") for flag in flags if flag.startswith("--from=")]:
                images += [
                    each for each in origins if not each.isdigit() and each.lower() not in map(str.lower, stages)
                ]
                continue
            for source in sources[:-1]:
                fetched = name == "ADD" and _REMOTE.search(source)
                (remote if fetched else files).append(source if fetched else _pattern(source))
    return Needs(tuple(images), tuple(stages), tuple(dict.fromkeys(files)), tuple(remote), defaults)


def has_other_escape(dockerfile: str) -> bool:
    """:returns: whether its lines may be continued by another character than a backslash; it is not read right then."""
    return _ESCAPE.search(dockerfile) is not None


def marked_stages(dockerfile: str, mark: str, target: str) -> str:
    """
    :param mark: lines that go to the end of all stages but the one that becomes the image.
    :param target: that stage; empty: the last one.
    :returns: a Dockerfile whose other stages can be found, since the Engine keeps them without a name.
    """
    kept, started, stage = list[str](), False, ""
    for line in _logical(dockerfile):
        words = line.split()
        if words and words[0].upper() == "FROM":
            if started and not (target and stage.lower() == target.lower()):
                kept.append(mark)
            started, (_, rest) = True, _words(line.strip()[5:])
            stage = rest[2] if len(rest) > 2 and rest[1].upper() == "AS" else ""
        kept.append(line)
    return "".join(kept)


def _instructions(text: str) -> Iterator[tuple[str, str]]:
    for line in _logical(text):
        whole = "".join(part for part in _lines(re.sub(r"\\[ \t]*\n", "\n", line)) if not _is_comment(part))
        if found := _INSTRUCTION.fullmatch(whole.rstrip()):
            yield found["name"].upper(), found["words"].replace("\n", " ")


def _logical(text: str) -> Iterator[str]:
    """:returns: the lines of a Dockerfile, each with those that continue it."""
    line = ""
    for part in _lines(text):
        line += part
        if _is_comment(part) and line != part:
            continue
        if re.search(r"\\[ \t]*$", part.rstrip("\r\n")) and not _is_comment(part):
            continue
        yield line if line.endswith("\n") else f"{line}\n"
        line = ""
    if line:
        yield f"{line}\n"


def _lines(text: str) -> list[str]:
    """:returns: the lines as the Engine reads them: no other character than the line feed ends one."""
    return re.findall(r"[^\n]*\n|[^\n]+", text)


def _is_comment(line: str) -> bool:
    return re.match(r"[^\S\x1c-\x1f]*#", line) is not None  # for the Engine, those separators are no space


def _words(text: str) -> tuple[list[str], list[str]]:
    """:returns: the flags in front, and the words behind them, which may be a JSON list."""
    flags = list[str]()
    text = text.strip()
    while found := _FLAG.match(text):
        flags.append(found[0])
        text = text[found.end() :].lstrip()
    if text.startswith("["):
        try:
            return flags, msgspec.json.decode(text, type=list[str])
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            pass
    return flags, text.split()


def _pattern(source: str) -> str:
    parts = [part for part in source.strip("\"'").split("/") if part not in ("", ".")]
    return "*" if not parts or "$" in source or ".." in parts else "/".join(parts)


def _fits(parts: list[str], pattern: str, *, above: bool = False) -> bool:
    """:param above: whether the path may be a directory above what fits."""
    wanted = pattern.split("/")
    if pattern == "*" or above:
        return all(map(fnmatchcase, parts, wanted))
    return len(parts) >= len(wanted) and all(map(fnmatchcase, parts, wanted))
