"""What programs do that move files over the network."""

from __future__ import annotations

import re
from collections.abc import Callable

from ironcurtain.command_rules.effect import HERE, Effects, operands, within
from ironcurtain.command_rules.risk import Risk
from ironcurtain.commandline.model import UNKNOWN, Word, Words
from ironcurtain.commandline.options import Options, Parsed, parse_options

_CURL = Options.of(
    "0123469aBfgGhiIjJklLMnNOpqRsSvVZ#A:b:c:C:d:D:e:E:F:H:K:m:o:P:Q:r:t:T:u:U:w:x:X:y:Y:z: url: request: data: "
    "data-raw: data-binary: data-urlencode: json: form: header: output: output-dir: user: user-agent: referer: "
    "cookie: cookie-jar: dump-header: max-time: connect-timeout: retry: retry-delay: retry-max-time: proxy: "
    "upload-file: range: cert: key: cacert: resolve: connect-to: write-out: limit-rate: silent show-error location "
    "fail compressed insecure head include verbose remote-name remote-header-name create-dirs get globoff http1.1 "
    "http2 ipv4 ipv6 no-progress-meter progress-bar fail-with-body location-trusted tlsv1.2 tlsv1.3 "
    "remote-name-all parallel continue-at: max-redirs: proto: proto-redir: unix-socket: interface:"
)
_WGET = Options.of(
    "46bcdEFhHkKLmNpqrSvVxa:A:B:D:e:i:I:l:o:O:P:Q:R:t:T:U:w:X:n: output-document: output-file: directory-prefix: "
    "header: user-agent: post-data: post-file: body-data: body-file: method: tries: timeout: wait: user: password: "
    "quiet verbose no-verbose continue timestamping recursive no-parent mirror page-requisites convert-links "
    "no-check-certificate content-disposition spider show-progress: level: accept: reject: referer: load-cookies: "
    "save-cookies: max-redirect: https-only server-response"
)
_CURL_WRITES = ("o", "output", "D", "dump-header", "c", "cookie-jar", "output-dir")
_CURL_READS = ("T", "upload-file", "E", "cert", "key", "cacert", "b", "cookie")
_CURL_DATA = ("d", "data", "data-binary", "data-urlencode", "json", "F", "form", "H", "header", "w", "write-out")
_WGET_WRITES = ("O", "output-document", "o", "output-file", "a", "P", "directory-prefix", "save-cookies")
_WGET_READS = ("post-file", "body-file", "load-cookies")


_SSH_SETTING = re.compile(r"(?i:BatchMode|ConnectTimeout|ServerAlive\w+|StrictHostKeyChecking|Port|User)=\w+")
"""Settings of ssh that make it reach, run and write nothing else."""


def _all_options(words: Words, options: Options) -> tuple[list[tuple[str, Word]], Words, bool]:
    """:returns: the options with values, the operands between them, and whether other options are there."""
    values: list[tuple[str, Word]] = []
    found: list[Word] = []
    rest = words[1:]
    while rest:
        parsed: Parsed = parse_options(rest, options)
        if parsed.strange:
            return values, (*found, *parsed.rest), True
        values += [(name, value) for name, value in parsed.values.items() if value is not None]
        found += parsed.rest[:1]
        rest = parsed.rest[1:]
    return values, tuple(found), False


def _named(values: list[tuple[str, Word]], names: tuple[str, ...]) -> Words:
    return tuple(value for name, value in values if name in names and value.text != "-")


def curl(words: Words) -> Effects:
    """What curl does."""
    values, found, strange = _all_options(words, _CURL)
    if strange:
        return Effects(Risk.UNKNOWN)
    data = _named(values, _CURL_DATA)
    sent = tuple(file for value in data for file in _sent_files(value))
    writes = _named(values, _CURL_WRITES)
    if any(re.fullmatch(r"-\w*[OJ]\w*|--remote-name.*", word.text) for word in words[1:]):
        writes = (*writes, HERE)
    if any(not word.known or "%output" in word.text for word in _named(values, ("w", "write-out"))):
        writes = (*writes, Word(UNKNOWN))
    other = _named(values, ("x", "proxy", "resolve", "connect-to", "unix-socket"))
    addresses = (*found, *_named(values, ("url",)), *(Word("\0") for _ in other))
    reads = (*_named(values, _CURL_READS), *sent)
    told = any(re.fullmatch(r"-\w*J\w*|--remote-h.*", word.text) for word in words[1:])  # the server tells names
    several = any(re.search(r"[\[{]", word.text) for word in addresses)  # names of files are made from parts of them
    fills = (*writes, HERE) if writes and (told or several) else ()
    return Effects(Risk.NETWORK, reads, writes, fills=fills, lands=_saved(writes, addresses), addresses=addresses)


def _sent_files(value: Word) -> Words:
    """:returns: the files that are named in data, by ``@``, or by ``<`` in forms."""
    if not value.known:
        return (value,)
    mark = re.search("[@<]", value.text)
    return tuple(map(Word.literal, re.split("[@<;,]", value.text[mark.end() :]))) if mark else ()


def wget(words: Words) -> Effects:
    """What wget does."""
    values, found, strange = _all_options(words, _WGET)
    if strange:
        return Effects(Risk.UNKNOWN)
    named = any(name in ("O", "output-document") for name, _ in values)
    writes = _named(values, _WGET_WRITES) + (() if named else (HERE,))
    trees = any(re.fullmatch(r"-[a-zA-Z]*[rmpx].*|--(?:rec|mir|page|force-d).*", word.text) for word in words[1:])
    trees |= any(re.match(r"--content-d", word.text) for word in words[1:])  # the server tells names
    reads, lands = _named(values, _WGET_READS), () if named else _saved(writes, found)
    return Effects(Risk.NETWORK, reads, writes, fills=writes if trees else (), lands=lands, addresses=found)


def _saved(directories: Words, addresses: Words) -> Words:
    """:returns: where files of other machines get to, by their names there."""
    return tuple(within(directory, address) for directory in directories for address in addresses)


def ssh(words: Words) -> Effects:
    """What ssh does, besides what it runs on the other machine."""
    options = Options.of("46aCGknqTtVvxc:i:l:m:o:p:")
    before = parse_options(words[1:], options)
    after = parse_options(before.rest[1:], options)
    given = [value for parsed in (before, after) for name, value in parsed.values.items() if name == "o"]
    host = tuple(Word(f"ssh://{word.pattern}") if "://" not in word.text else word for word in before.rest[:1])
    if before.strange or after.strange or not all(value and _SSH_SETTING.fullmatch(value.text) for value in given):
        return Effects(Risk.UNKNOWN, addresses=(*host, Word(UNKNOWN)))
    files = tuple(value for parsed in (before, after) for name, value in parsed.values.items() if name == "i" and value)
    return Effects(Risk.NETWORK, reads=files, addresses=host)


def copies(words: Words) -> Effects:
    """What scp and rsync do: a file is on another machine if its name has a colon before any slash."""
    files = operands(words)
    remote = tuple(word for word in files if re.match(r"[^/]*:", word.text) or not word.known)
    local = tuple(word for word in files if word not in remote)
    deletes = any(word.text.startswith(("--del", "--remove")) for word in words)
    risk = Risk.DESTRUCTIVE if deletes else Risk.NETWORK if remote else Risk.READ
    wholes = local if deletes else ()
    target = local[-1:] if len(files) > 1 and files[-1] in local else ()
    fills = (*target, *(within(each, file) for each in target for file in files[:-1]))
    return Effects(risk, local, local[-1:], wholes, True, fills, addresses=remote)


def sftp(words: Words) -> Effects:
    """What sftp does: its only operand is on another machine."""
    remote = tuple(Word(f"sftp://{word.pattern}") if "://" not in word.text else word for word in operands(words)[:1])
    return Effects(Risk.NETWORK, writes=(HERE,), addresses=remote)


TRANSFERS: dict[str, Callable[[Words], Effects]] = {
    "curl": curl,
    "wget": wget,
    "ssh": ssh,
    "slogin": ssh,
    "scp": copies,
    "sftp": sftp,
    "rsync": copies,
}
"""The programs that this module knows."""
