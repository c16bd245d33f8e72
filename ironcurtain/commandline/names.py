"""Names that have a meaning for shells: variables that change commands, shells, and reserved words."""

from __future__ import annotations

from fnmatch import fnmatchcase


def names(text: str) -> frozenset[str]:
    """:returns: the names in a text, which blanks divide."""
    return frozenset(text.split())


SHELLS = frozenset(("sh", "bash", "zsh", "dash", "ksh", "mksh", "ash", "fish", "rbash", "yash", "csh", "tcsh"))
"""Programs that read commands."""

INTERPRETERS = names(
    "python python2 python3 pypy3 perl ruby node nodejs deno bun php lua luajit tclsh expect awk osascript"
)
"""Programs that read programs in other languages."""

RESERVED = names(
    "if then else elif fi for while until do done case esac select function time coproc in { } ! [[ ]] begin end "
    "and or not switch repeat foreach nocorrect noglob always"
)
"""Words that are part of a shell's grammar, in bash, zsh or fish."""

_DANGEROUS = names(
    "PATH path BASH_ENV ENV BASH_FUNC_* BASHOPTS SHELLOPTS BASH_ALIASES BASH_CMDS IFS CDPATH cdpath HOME PWD "
    "OLDPWD PROMPT_COMMAND PS[0-9] PROMPT RPROMPT POSTEDIT TRAP* precmd* preexec* chpwd* fpath FPATH ZDOTDIR "
    "XDG_* LD_* DYLD_* GCONV_PATH LOCPATH NLSPATH TERMINFO* HISTFILE HISTCONTROL NULLCMD READNULLCMD GIT_* SSH_* "
    "*_ASKPASS *ASKPASS *PAGER* *EDITOR* VISUAL FCEDIT BROWSER LESS LESSOPEN LESSCLOSE MAN* PYTHON* PERL5* "
    "PERLLIB RUBY* NODE_* LUA_* JAVA_TOOL_OPTIONS _JAVA_OPTIONS JDK_JAVA_OPTIONS CLASSPATH *_COMMAND RSYNC_* "
    "TAR_OPTIONS GREP_OPTIONS MAKEFLAGS MAKEFILES GNUMAKEFLAGS CARGO_* RUSTC* DOCKER_HOST KUBECONFIG GPG* "
    "CURL_HOME WGETRC HTTP_PROXY HTTPS_PROXY ALL_PROXY http_proxy https_proxy all_proxy SHELL"
)


def changes_commands(variable: str) -> bool:
    """:returns: whether a variable makes shells or common programs run, load or find something else."""
    return any(fnmatchcase(variable, pattern) for pattern in _DANGEROUS)
