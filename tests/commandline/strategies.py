"""Command lines for hypothesis."""

from __future__ import annotations

import shlex

from hypothesis import strategies as st


def split(text: str) -> list[str]:
    """:returns: the parts of a text between blanks."""
    return text.split()


TOKENS = (
    *split("rm ls sudo sh -c -rf / ~ echo eval x=1 $x $HOME ${x:-y} $(ls) `ls` <(ls) 'a' $'\\x41' {a,b} * # !"),
    *split("; & && || | |& ( ) { } [[ ]] [ ] (( )) if then else fi for in do done while case esac ;; function f()"),
    *split("> >> < <<E <<'E' <<- <<< 2>&1 &> \\ E ' \" ` $ $( ${ $(( }"),
    *("\n", " ", "\t", "\\\n", "\nE\n", '"a $x"', "'a b'"),
)

lines = st.lists(st.sampled_from(TOKENS), max_size=30).map(" ".join) | st.lists(
    st.sampled_from(TOKENS), max_size=30
).map("".join)
"""Texts that are often, but not always, shell."""

words = st.text(st.characters(codec="utf-8", exclude_characters="\0\r\n"), max_size=12)
"""Arguments of a command."""

argvs = st.lists(words, min_size=1, max_size=6).map(lambda argv: ["tool", *argv])
"""Commands with arguments, whose name means nothing."""

_quote = shlex.quote

wrappers = st.sampled_from(
    (
        lambda text: f"sudo -n {text}",
        lambda text: f"env -i X=1 {text}",
        lambda text: f"timeout -k 1 5 {text}",
        lambda text: f"nice -n 3 {text}",
        lambda text: f"nohup {text}",
        lambda text: f"command {text}",
        lambda text: f"xargs -0 {text}",
        lambda text: f"find . -exec {text} \\;",
        lambda text: f"sh -c {_quote(text)}",
        lambda text: f"bash -ec {_quote(text)}",
        lambda text: f"eval {_quote(text)}",
        lambda text: f"su root -c {_quote(text)}",
        lambda text: f"ssh -p 1 host {_quote(text)}",
        lambda text: f"watch -n1 {_quote(text)}",
        lambda text: f"flock f -c {_quote(text)}",
        lambda text: f"env -S {_quote(text)}",
        lambda text: f"stdbuf -oL {text}",
        lambda text: f"busybox {text}",
    )
)
"""Commands around a command."""

COMPLETE = (
    "ls -l 'a b' | sort > out 2>&1",
    "cat <<'E'\nit's $(x\nE",
    "cat <<E > f\n$(ls `pwd`) it's\nE",
    "if [ -f x ]; then cat x; else :; fi",
    'for f in *.txt; do wc -l "$f"; done',
    "case $x in (a|b) ls;; *) pwd;; esac",
    'f() { echo "$@"; }; f x',
    "( cd x && ls ) &",
    "x=1 y=$(date) z=(1 2)",
    "echo 'a\nb' \"c\n$(ls)\" # it's a comment",
    "ls \\\n  -l",
    "[[ $x == y* ]] && ((x++)) || true",
    "echo `echo \\`ls\\`` ${x:-$(pwd)} $'it\\'s'",
    "while read -r l; do echo $l; done < <(ls)",
    "sudo sh -c 'ls; pwd'",
    "find . -name x -exec ls {} \\;",
    "",
)
"""Lines that end where they end, so that the next line is another command."""

PLAIN_WORDS = (
    ("a", "a"),
    ("-x", "-x"),
    ("--x=y/z", "--x=y/z"),
    ("b.txt", "b.txt"),
    ("''", ""),
    ("'x y;|&$z'", "x y;|&$z"),
    ('"q \\"w\\" \\$ \\\\ \'"', 'q "w" $ \\ \''),
    ("'a'b\"c\"", "abc"),
    ("a\\ b\\;\\*", "a b;*"),
    ("{}", "{}"),
    ("+%s", "+%s"),
    ("a,b:c@d", "a,b:c@d"),
    ("\u00e9", "\u00e9"),
    ("\\#", "#"),
    ("=", "="),
    ("]", "]"),
)
"""Words of the small grammar, as written and as a program gets them."""

PLAIN_REDIRECTIONS = (
    ("", "", ""),
    ("> f", "", "f"),
    (">>'f'g", "", "fg"),
    ("< f", "f", ""),
    ("2>&1 > f", "", "f"),
    ("2>f &> g", "", "f g"),
)
"""Redirections as written, with the files that they read and write."""

PLAIN_OPERATORS = (" ; ", ";", "\n", " && ", " || ", "||", " | ", "|", " &&\n", " |\n\n", " \\\n ;")
"""What joins simple commands."""
