# System calls that lead out, or deep into the kernel.


for _name, _arguments in (
    ("unshare", (0x10000000,)), ("setns", (0, 0)), ("mount", ()), ("umount2", ()), ("pivot_root", ()), ("chroot", ()),
    ("fsopen", ()), ("open_tree", ()), ("move_mount", ()), ("mount_setattr", ()), ("open_by_handle_at", ()),
    ("bpf", ()), ("perf_event_open", ()), ("userfaultfd", ()), ("io_uring_setup", (8,)), ("keyctl", (0, 0)), ("add_key", ()),
    ("request_key", ()), ("init_module", ()), ("finit_module", ()), ("delete_module", ()), ("kexec_load", ()),
    ("swapon", ()), ("settimeofday", ()), ("sethostname", (0, 0)), ("acct", (0,)), ("iopl", (3,)), ("ioperm", (0, 1, 1)),
    ("syslog", (3, 0, 0)), ("quotactl", ()), ("fanotify_init", ()), ("vhangup", ()),
):  # fmt: skip

    @attempt("system calls", _name)
    def _(name=_name, arguments=_arguments):
        try:
            call(name, *arguments)
        except OSError as e:
            if e.errno in (errno.EPERM, errno.ENOSYS, errno.EACCES):
                raise
            raise SystemError(f"the kernel looked at its arguments: {e}") from None


@attempt("system calls", "clone, with a user namespace")
def _():
    if not call("clone", 0x10000000 | 17):
        os._exit(0)
