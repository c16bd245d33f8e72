# Files that lie outside.




@attempt("files", "read a file outside by its path")
def _():
    read(FILE)


@attempt("files", "read what others left in the directory for temporary files")
def _():
    read(TARGETS["left"])


@attempt("files", "read it by a path with ..")
def _():
    read(os.path.join(WORK, "../" * 40 + FILE.lstrip("/")))


@attempt("files", "read it through a symbolic link in the workspace")
def _():
    link(FILE)
    read(os.path.join(WORK, "prove-link"))


@attempt("files", "read it through a link to the root directory")
def _():
    link("/")
    read(os.path.join(WORK, "prove-link", FILE.lstrip("/")))


@attempt("files", "make a hard link to it")
def _():
    os.link(FILE, os.path.join(WORK, "prove-hard"))


for _root in (
    "/proc/self/root",
    "/proc/1/root",
    "/proc/1/cwd/../../../../../..",
    f"/proc/{TARGETS['pid']}/root",
    "/proc/thread-self/root",
):

    @attempt("files", f"read it through {_root}")
    def _(root=_root):
        read(root + FILE)


@attempt("files", "read it through a descriptor left open")
def _():
    for number in range(3, 64):
        for name in (f"/proc/self/fd/{number}", f"/proc/1/fd/{number}"):
            with contextlib.suppress(OSError, Refused):
                read(name)
                return
            with contextlib.suppress(OSError, Refused):
                read(name + FILE)
                return
    raise Refused("no descriptor leads there")


for _directory, _name in TARGETS["places"]:

    @attempt("files", f"find it by listing {_directory}")
    def _(directory=_directory, name=_name):
        if name not in os.listdir(directory):
            raise Refused("it is not listed")


for _name in ("/etc/shadow", "/etc/sudoers", "/etc/ssh/sshd_config", "/var/log/lastlog"):

    @attempt("files", f"read {_name}")
    def _(name=_name):
        with open(name, "rb") as file:
            file.read(1)


@attempt("files", "read the keys of this home")
def _():
    for name in (".ssh", ".gnupg", ".aws", ".netrc", ".config/gh", ".docker/config.json", ".ironcurtain"):
        if os.path.exists(os.path.expanduser(f"~/{name}")):
            return
    raise Refused("there are none")


@attempt("files", "write to the file outside")
def _():
    write(FILE)


@attempt("files", "write to it through a link")
def _():
    link(FILE)
    write(os.path.join(WORK, "prove-link"))


for _name in (
    "/usr/bin/prove",
    "/etc/prove",
    "/opt/prove",
    "/lib/prove",
    "/etc/ld.so.preload",
    "/var/prove",
):

    @attempt("files", f"write {_name}")
    def _(name=_name):
        write(name, "xb")
        if not os.path.exists(name):
            raise Refused("it is not there")
        if os.stat(name).st_dev in memory_devices():
            os.unlink(name)
            raise Refused("it was in memory, and went with the sandbox")


@attempt("files", "write to the program that runs")
def _():
    write(os.path.realpath(sys.executable))


for _name in (
    "/proc/sys/kernel/core_pattern",
    "/proc/sysrq-trigger",
    "/sys/kernel/uevent_helper",
    "/proc/self/oom_score_adj",
):

    @attempt("files", f"write {_name}")
    def _(name=_name):
        value = {"/proc/self/oom_score_adj": b"-1000", "/proc/sysrq-trigger": b"?"}.get(name, b"core")
        with open(name, "wb", buffering=0) as file:
            file.write(value)


def link(target):
    place = os.path.join(WORK, "prove-link")
    with contextlib.suppress(FileNotFoundError):
        os.unlink(place)
    os.symlink(target, place)


def memory_devices():
    with open("/proc/self/mountinfo") as file:
        lines = [line.split() for line in file]
    pairs = [line[2].split(":") for line in lines if "tmpfs" in line or "overlay" in line]
    return {os.makedev(int(major), int(minor)) for major, minor in pairs}
