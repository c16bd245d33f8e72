# Limits.




@attempt("limits", "take 16 GiB of memory")
def _():
    def take():
        kept = []
        for _ in range(64):
            kept.append(bytearray(256 * 1024 * 1024))

    in_child(take, 60)


@attempt("limits", f"start {TARGETS['many']} processes")
def _():
    def take():
        started = []
        try:
            for _ in range(TARGETS["many"]):
                child = os.fork()
                if not child:
                    signal.pause()
                started.append(child)
        finally:
            for child in started:
                os.kill(child, signal.SIGKILL)

    in_child(take, 60)


@attempt("limits", "open 100 000 files")
def _():
    def take():
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
        kept = [os.open("/dev/null", os.O_RDONLY) for _ in range(100_000)]
        kept.clear()

    in_child(take)


@attempt("limits", "fill the temporary directory with 8 GiB")
def _():
    def take():
        for number in range(8):
            with open(f"{place}/{number}", "wb") as file:
                for _ in range(1024):
                    file.write(bytes(1024 * 1024))

    place = tempfile.mkdtemp(prefix="prove-fill-")
    try:
        in_child(take, 60)
    finally:
        shutil.rmtree(place, ignore_errors=True)


@attempt("limits", "leave a core dump")
def _():
    if resource.getrlimit(resource.RLIMIT_CORE)[1] == 0:
        raise Refused("their size is limited to 0")


@attempt("limits", "raise its own limits")
def _():
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard + 1, hard + 1))
