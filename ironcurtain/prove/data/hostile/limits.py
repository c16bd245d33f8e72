# Limits.




PIECE = 256 * 1024 * 1024


def fill(mapped):
    for start in range(0, len(mapped), 64 * 1024 * 1024):
        piece = range(start, min(start + 64 * 1024 * 1024, len(mapped)), 4096)
        mapped[piece.start : piece.stop : 4096] = b"x" * len(piece)


def private_memory():
    return mmap.mmap(-1, PIECE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)


@attempt("limits", "take 16 GiB of memory")
def _():
    def take():
        # All of it before any is used: most limits refuse at once, where filling what they permit takes seconds.
        for mapped in [private_memory() for _ in range(64)]:
            fill(mapped)

    in_child(take, 60)


def first_to_end():
    """Let the kernel end this process and its children, rather than the one that reports."""
    with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w") as file:
        file.write("1000")


def memory_file():
    descriptor = os.memfd_create("prove")
    try:
        os.posix_fallocate(descriptor, 0, PIECE)  # takes as much memory as to fill it does, in half of the time
    except OSError:
        os.ftruncate(descriptor, PIECE)
        mapped = mmap.mmap(descriptor, PIECE)
        fill(mapped)
        return mapped
    return descriptor


def shared_memory():
    mapped = mmap.mmap(-1, PIECE)
    fill(mapped)
    return mapped


def filled_memory():
    mapped = private_memory()
    fill(mapped)
    return mapped


# Two of each, so that one piece more than there is memory is possible if one of them is not counted; the rest is what
# takes least time.
WAYS = (memory_file, shared_memory, filled_memory) * 2


@attempt("limits", "take more than all its memory by memory files, shared memory and processes")
def _():
    def keep(number, writer):
        try:
            kept = WAYS[number]() if number < len(WAYS) else memory_file()
            os.write(writer, b"x")
            signal.pause()
        finally:
            os._exit(1)

    def take():
        first_to_end()
        reader, writer = os.pipe()
        started = []
        try:
            for number in range(TARGETS["memory"] // PIECE + 1):
                if not (child := os.fork()):
                    keep(number, writer)
                started.append(child)
                while not select.select([reader], [], [], 0.05)[0]:
                    check(started)
                os.read(reader, 1)
            check(started)
        finally:
            for child in started:
                with contextlib.suppress(OSError):
                    os.kill(child, signal.SIGKILL)

    def check(started):
        if any(os.waitpid(child, os.WNOHANG)[0] for child in started):
            raise Refused("one of them was ended")

    in_child(take, 60)


def is_in_memory(path):
    found = ctypes.create_string_buffer(256)
    kind = ctypes.c_long.from_buffer(found)
    return LIBC.statfs(path.encode(), found) == 0 and kind.value in (0x01021994, 0x858458F6)


@attempt("limits", "fill a directory in memory beyond its size")
def _():
    def take():
        first_to_end()
        for place in sorted(writable):
            with contextlib.suppress(OSError), tempfile.TemporaryFile(dir=place) as file:
                for _ in range(TARGETS["temporary"] // 2**20 + 16):
                    file.write(bytes(2**20))
                file.flush()
                return
        raise Refused("each is full before that, or refused")

    home = os.path.expanduser("~")
    places = (tempfile.gettempdir(), "/dev/shm", "/run", "/dev", "/", home, "/var/tmp", "/dev/mqueue")
    writable = {place for place in places if os.access(place, os.W_OK) and is_in_memory(place)}
    if not writable:
        raise Refused("there is none")
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
