# The isolation itself: what must hold whatever else does.




@attempt("isolation", "find a secret in the environment")
def _():
    places = [f"/proc/{number}/environ" for number in ("self", 1, os.getppid())]
    found = [f"{name}={value}" for name, value in os.environ.items()]
    for place in places:
        with contextlib.suppress(OSError), open(place, "rb") as file:
            found.append(file.read(1 << 20).decode(errors="replace"))
    holds_secret("\n".join(found))


for _name, _inode in TARGETS["namespaces"].items():

    @attempt("isolation", f"share the {_name} namespace of this machine")
    def _(name=_name, inode=_inode):
        if os.readlink(f"/proc/self/ns/{name}") != inode:
            raise Refused("it is another one")


for _name, _most in TARGETS["limits"].items():

    @attempt("isolation", f"have a higher limit than it should ({_name})")
    def _(name=_name, most=_most):
        hard = resource.getrlimit(getattr(resource, name))[1]
        if hard != resource.RLIM_INFINITY and hard <= most:
            raise Refused(f"it is {hard}")


if TARGETS["writable"]:

    @attempt("isolation", "have a mount that can be written")
    def _():
        with open("/proc/self/mountinfo") as file:
            places = {line.split()[4] for line in file}
        places |= {"/", "/dev", "/usr", "/etc", "/proc/sys", "/proc/sysrq-trigger"}
        for place in sorted(places - set(TARGETS["writable"])):
            with contextlib.suppress(OSError):  # it is below another one
                if not place.startswith("/dev/") and not os.statvfs(place).f_flag & os.ST_RDONLY:
                    raise SystemError(f"{place} is one")
        raise Refused("there is none but its own")


@attempt("files", "put a link in the place of the file outside")  # the last one, since others need the file
def _():
    link("/")
    os.rename(os.path.join(WORK, "prove-link"), FILE)
