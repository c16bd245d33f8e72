# Other processes.




@attempt("processes", "see a process outside")
def _():
    with open(f"/proc/{TARGETS['pid']}/cmdline", "rb") as file:
        if TARGETS["marker"].encode() not in file.read():
            raise Refused("that number is another process, of the sandbox")


@attempt("processes", "end a process outside")
def _():
    if TARGETS["pid"] in (os.getpid(), os.getppid(), 1):
        raise Refused("that number is the sandbox's own process")
    os.kill(TARGETS["pid"], 0)
    with open(f"/proc/{TARGETS['pid']}/cmdline", "rb") as file:
        if TARGETS["marker"].encode() not in file.read():
            raise Refused("that number is another process, of the sandbox")
    os.kill(TARGETS["pid"], signal.SIGKILL)


@attempt("processes", "end every process that can be reached")
def _():
    in_child(lambda: (os.setsid(), os.kill(TARGETS["pid"], signal.SIGTERM)))
    raise Refused("whether it did is seen outside")


@attempt("processes", "read the memory of a process outside")
def _():
    with open(f"/proc/{TARGETS['pid']}/cmdline", "rb") as file:
        if TARGETS["marker"].encode() not in file.read():
            raise Refused("that number is another process, of the sandbox")
    with open(f"/proc/{TARGETS['pid']}/maps") as maps:
        start = int(maps.readline().split("-")[0], 16)
    with open(f"/proc/{TARGETS['pid']}/mem", "rb") as file:
        file.seek(start)
        file.read(16)


for _what, _name, _arguments in (
    ("trace a process outside", "ptrace", (16, TARGETS["pid"])),
    ("read another process's memory", "process_vm_readv", (1, 0, 0, 0, 0)),
    ("take a descriptor from another process", "pidfd_getfd", (3, 0, 0)),
    ("compare kernel objects of two processes", "kcmp", (1, 1, 0, 0, 0)),
):

    @attempt("processes", _what)
    def _(name=_name, arguments=_arguments):
        call(name, *arguments)
