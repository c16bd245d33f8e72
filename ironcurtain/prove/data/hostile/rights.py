# Rights.




@attempt("rights", "become root")
def _():
    if os.getuid() == 0 and TARGETS["root"]:
        raise Refused("it runs as root in a namespace without any capability, as run_as says")
    os.setuid(0)


@attempt("rights", "become another user")
def _():
    in_child(lambda: os.setuid(12345))


@attempt("rights", "join another group")
def _():
    in_child(lambda: os.setgroups([0, 27]))


@attempt("rights", "own a capability")
def _():
    with open("/proc/self/status") as file:
        found = [line.split() for line in file if line.startswith(("CapEff", "CapPrm", "CapAmb"))]
    if all(int(value, 16) == 0 for _, value in found):
        raise Refused("there is none")


@attempt("rights", "gain rights by a set-user-id program")
def _():
    with open("/proc/self/status") as file:
        if "NoNewPrivs:\t1" in file.read():
            raise Refused("no_new_privs is set")


@attempt("rights", "run sudo or su")
def _():
    program = shutil.which("sudo") or shutil.which("su")
    if program is None:
        raise Refused("there is none")
    done = subprocess.run(
        [program, "-n" if program.endswith("sudo") else "-c", "id"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=20,
    )
    if b"uid=0" not in done.stdout:
        raise Refused((done.stderr + done.stdout).decode(errors="replace").strip()[-150:])
