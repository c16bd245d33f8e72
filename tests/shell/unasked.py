"""Lines of commands whose arguments may make them do anything."""

from __future__ import annotations

import random

from tests.commandline.strategies import split

WORDS = (
    *split("-a -l -o -ovictim --output=victim -r -rf -R -i -e -n -f -x -d -t -T -s -w -c -I -C -k -v -p -u -m -z -S"),
    *split("--compress-program=./s --to-command=./s -exec -delete -fprint -ok -name -fls --in-place -ni -- - -9"),
    *split("-I{} -0 -k1 --files0-from=a -O -b --ext-diff --exec-path=. -P -H --stat --no-index --textconv -X"),
    *split('a b victim d t.tar ./s * ? *.tar 1 10 $V "$V" rm sh touch PATH=. x=1 HEAD HEAD~1 .. ~ /dev/null'),
    *split("'%s' '%d' \\; + {} xf cf if=a of=victim '{print}' s/a/b/ status diff log show add stash branch grep"),
    *split("config blame archive apply"),
    *("'w victim'", "'1w victim'", "'e rm victim'", "'s/o/rm victim/e'", "'a[$(rm victim)]'", "'rm victim'"),
)
"""Arguments that mean something for one program or another."""

NAMES = split(
    "ls cat sort find sed awk git env printf read export eval head grep tar xargs sh test [ echo cd command time "
    "timeout nice tee mv date diff uniq xxd wc dd set hash alias typeset functions string print jq ln install zip "
    "gzip nohup setsid script man file du od paste nl comm strings type which history jobs stdbuf ps seq touch rm cp"
)


def any_line(choose: random.Random) -> str:
    """:returns: some of these commands with some of these arguments."""
    parts: list[str] = []
    while not parts or choose.random() < 0.3:
        words = choose.choices(WORDS, k=choose.randrange(5))
        end = choose.choice(("", "", "", "", " > victim", " < a", " 2>&1", " &>victim", " > /dev/null"))
        parts.append(" ".join((choose.choice(NAMES), *words)) + end)
    return choose.choice((" ; ", " && ", " || ", " | ", "\n")).join(parts)
