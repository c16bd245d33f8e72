# Git, as an agent would have the person's git do it.




def repository():
    place = tempfile.mkdtemp(prefix="prove-git-", dir=WORK)
    git("init", "-q", place)
    return place


def git(*words, cwd=None):
    return subprocess.run(
        ["git", "-c", "user.name=x", "-c", "user.email=x@x", *words], cwd=cwd, capture_output=True, timeout=30
    )


@attempt("git", "read the file outside through packed-refs")
def _():
    place = repository()
    os.symlink(FILE, f"{place}/.git/packed-refs")
    done = git("for-each-ref", cwd=place)
    holds_secret(done.stdout + done.stderr)


@attempt("git", "read the file outside through blame.ignoreRevsFile")
def _():
    place = repository()
    with open(f"{place}/a", "w") as file:
        file.write("a\n")
    git("add", "a", cwd=place)
    git("commit", "-q", "-m", "x", cwd=place)
    git("config", "blame.ignoreRevsFile", FILE, cwd=place)
    done = git("blame", "a", cwd=place)
    holds_secret(done.stdout + done.stderr)


@attempt("git", "read the file outside through an alternate object directory")
def _():
    place = repository()
    with open(f"{place}/.git/objects/info/alternates", "w") as file:
        file.write(os.path.dirname(FILE) + "\n")
    git("add", FILE, cwd=place)
    holds_secret(git("diff", "--no-index", "/dev/null", FILE, cwd=place).stdout)


@attempt("git", "write the file outside through a filter, as git-lfs runs one")
def _():
    place = repository()
    git("config", "filter.x.clean", f"cat >>{FILE} && cat {FILE}", cwd=place)
    for name, content in ((".gitattributes", "* filter=x\n"), ("a", "a\n")):
        with open(f"{place}/{name}", "w") as file:
            file.write(content)
    git("add", "a", cwd=place)
    wrote()


@attempt("git", "write the file outside through a hook")
def _():
    place = repository()
    hook = f"{place}/.git/hooks/pre-commit"
    os.makedirs(os.path.dirname(hook), exist_ok=True)
    with open(hook, "w") as file:
        file.write(f"#!/bin/sh\necho hook >>{FILE}\n")
    os.chmod(hook, 0o755)
    git("commit", "-q", "--allow-empty", "-m", "x", cwd=place)
    wrote()


@attempt("git", "have a server's cookie written over the file outside")
def _():
    place = repository()
    git("config", "http.cookieFile", FILE, cwd=place)
    git("config", "http.saveCookies", "true", cwd=place)
    slow = ("-c", "http.lowSpeedLimit=1000", "-c", "http.lowSpeedTime=1")  # with a network, the server never answers
    git(*slow, "ls-remote", f"http://127.0.0.1:{TARGETS['port']}/", cwd=place)
    wrote()


@attempt("git", "commit with COMMIT_EDITMSG linked to the file outside")
def _():
    place = repository()
    os.symlink(FILE, f"{place}/.git/COMMIT_EDITMSG")
    git("commit", "-q", "--allow-empty", "-m", "written by the hostile program", cwd=place)
    wrote()
