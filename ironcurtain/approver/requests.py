"""
Find what a sentence plainly asks for.

Only a small grammar counts: clauses that begin with a known word that asks for something, after words of courtesy. What
is said in any other way, in whatever language, asks for nothing: a person decides then.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

_LEAD = (
    *("please", "kindly", "now", "then", "next", "first", "also", "just", "ok", "okay", "so", "and", "hi", "hello"),
    *(
        "go ahead and",
        "i want you to",
        "i would like you to",
        "i['\u2019]d like you to",
        "feel free to",
        "let['\u2019]s",
    ),
    *("you can", "you may", "you should", "you must", "(?:can|could|would|will) you"),
    *("bitte", "jetzt", "dann", "zuerst", "por favor", "s['\u2019]il (?:te|vous) pla[iî]t", "ensuite", "per favore"),
    *("und", "et", "puis", "y", "e", "en"),
)
"""What may come before the word that asks (parts of a regular expression)."""

_ASKING = (
    *("read", "open", "show", "print", "display", "view", "list", "look", "check", "inspect", "examine", "review"),
    *("load", "parse", "summari[sz]e", "translate", "explain", "analy[sz]e", "compare", "use", "see", "search", "find"),
    *("get", "fetch", "download", "visit", "browse", "retrieve", "pull", "clone", "copy", "move", "rename", "write"),
    *("save", "put", "store", "append", "add", "make", "create", "edit", "change", "update", "modify", "fix", "mend"),
    *("replace", "rewrite", "delete", "remove", "erase", "clean", "push", "publish", "upload", "send", "post", "share"),
    *("mail", "email", "submit", "commit", "merge", "tag", "release", "deploy", "run", "call", "sync", "back up"),
    *("import", "export", "convert", "allow", "invite", "subscribe", "what (?:does|do)", "what(?: i|['\u2019])s in"),
    *("lies", "lese", "öffne", "zeige?", "liste", "hole?", "lade", "kopiere?", "schreibe?", "vergleiche", "prüfe"),
    *("klone", "lösche?", "verschiebe", "sende?", "lis", "lisez", "ouvre", "montre", "copie", "écris", "télécharge"),
    *("supprime", "envoie", "lee", "abre", "muestra", "copia", "escribe", "descarga", "borra", "leggi", "apri"),
    *("scrivi", "scarica", "leia", "abra", "lees", "toon", "kopieer", "schrijf"),
)
"""Words that ask for something, in the form that asks (parts of a regular expression)."""

NEGATION = re.compile(
    r"\b(?:no|not|never|none|nothing|nobody|neither|nor|without|except|excepting|excluding|besides|but|avoid|unless"
    r"|instead|stop|refuse|refrain|deny|forbid|forbidden|cannot|prohibited|beware|dont|cant|wont|alone|ignore|skip"
    r"|spare|other than|apart from|rather than|away from|hands off|keep off|keep out|off[- ]limits|leave|off|than|if"
    r"|until|pretend|untouched|unchanged|unread|intact|private|as is|as it is"
    r"|nicht|kein\w*|nie|niemals|ohne|außer|ausser|nichts|niemand|weder|verboten|weg|lass|lasst|wenn|finger"
    r"|ne|pas|jamais|sans|sauf|aucune?|rien|interdit|excepté|hormis|laisse[rz]?|évite"
    r"|nunca|jamás|sin|salvo|excepto|nada|prohibido|menos|deja|dejes|evita"
    r"|non|mai|senza|tranne|eccetto|niente|lascia|não|sem|exceto|deixe|niet|geen|nooit|zonder|behalve"
    r"|не|нет|никогда|кроме|nie|bez|inte|aldrig|ikke|aldri|ei|älä)\b"
    r"|n['\u2019]t\b|\bn['\u2019]|不|别|別|勿|没|除了|ない|しないで|禁止|안|마세요|말|하지",
    re.IGNORECASE,
)
"""Words with which a sentence may say the opposite, or make a condition, in some languages."""

_BULLET = r"[\s\-*•\d.)(]*"
_LEADS = rf"{_BULLET}(?:(?:{'|'.join(_LEAD)})\b[\s,]*)*"
_REQUEST = re.compile(
    rf"{_LEADS}(?:{'|'.join(_ASKING)})\b(?![-'\u2019]|\s+(?:sure|certain|clear|that|out|away|after|to it|off)\b)",
    re.IGNORECASE,
)
_COURTESY = re.compile(rf"{_LEADS}[\s,]*", re.IGNORECASE)
_MORE = re.compile(rf"{_LEADS}\S+(?:\s+(?:please|too|as well|bitte|now))?[\s.!?]*", re.IGNORECASE)
"""A clause that only names one more thing."""

_STATEMENT = re.compile(r"\S\s+(?:is|are|was|were|would|will|should|must|has|had|may|might)\b", re.IGNORECASE)
_ASKS_POLITELY = re.compile(rf"{_BULLET}(?:please\s+)?(?:(?:can|could|would|will) you|what)\b", re.IGNORECASE)
_CLAUSE_END = re.compile(r",(?=\s)|\s(?=(?:and|then|und|dann|et|puis|y|e|en)\s)", re.IGNORECASE)
SENTENCE_END = re.compile(r"[.!?;](?=\s)|\n")
"""Where a sentence ends."""


def requests_in(text: str) -> str:
    """:returns: the text, in which spaces stand for whatever is not plainly asked for. Its length is the same."""
    return "".join(
        part if asks else re.sub(r"[^\n]", " ", part)
        for sentence in _parts(text, SENTENCE_END)
        for part, asks in _judged(sentence)
    )


def _judged(sentence: str) -> Iterator[tuple[str, bool]]:
    """:returns: the clauses of a sentence, and whether each asks. After one that does not, none does: it may cite."""
    plain = not NEGATION.search(sentence)
    if sentence.rstrip().endswith("?") and not _ASKS_POLITELY.match(sentence):
        plain = False
    asked = False
    for clause in _parts(sentence, _CLAUSE_END):
        if (request := _REQUEST.match(clause)) is not None:
            plain = asked = plain and _STATEMENT.search(clause, request.end()) is None
        elif _COURTESY.fullmatch(clause) is None:
            plain = asked = asked and _MORE.fullmatch(clause.rstrip(" ,")) is not None
        yield clause, asked


def _parts(text: str, end: re.Pattern[str]) -> Iterator[str]:
    """:returns: the parts of a text, each with its end."""
    start = 0
    for match in end.finditer(text):
        yield text[start : match.end()]
        start = match.end()
    yield text[start:]
