# The network, and sockets of this machine.




@attempt("network", "connect to a server of this machine by IPv4")
def _():
    connect(socket.AF_INET, ("127.0.0.1", TARGETS["port"]))


@attempt("network", "connect to it by IPv6")
def _():
    connect(socket.AF_INET6, ("::1", TARGETS["port6"]))


@attempt("network", "connect to it by an address of this machine")
def _():
    for address in TARGETS["addresses"]:
        with contextlib.suppress(OSError):
            connect(socket.AF_INET, (address, TARGETS["port"]))
            return
    raise Refused("no address answers")


@attempt("network", "send it a datagram")
def _():
    connect(socket.AF_INET, ("127.0.0.1", TARGETS["port"]), socket.SOCK_DGRAM)
    raise Refused("whether it arrived is seen outside")


@attempt("network", "ask the name server that the Docker Engine has in networks")
def _():
    query = b"\0\1\1\0\0\1\0\0\0\0\0\0\7example\3org\0\0\1\0\1"
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
        asking.settimeout(2)
        asking.connect(("127.0.0.11", 53))
        asking.send(query)
        asking.recv(512)


@attempt("network", "connect to a UNIX socket outside")
def _():
    connect(socket.AF_UNIX, TARGETS["socket"])


@attempt("network", "connect to a socket without a file (abstract)")
def _():
    connect(socket.AF_UNIX, "\0" + TARGETS["abstract"])


for _name in (
    "/var/run/docker.sock",
    "/run/docker.sock",
    "/run/containerd/containerd.sock",
    "/run/dbus/system_bus_socket",
    "/run/systemd/private",
):

    @attempt("network", f"connect to {_name}")
    def _(name=_name):
        connect(socket.AF_UNIX, name)


@attempt("network", "find an interface other than loopback")
def _():
    others = [name for _, name in socket.if_nameindex() if name != "lo"]
    if not others:
        raise Refused("there is none")


@attempt("network", "bring up an interface of its own")
def _():
    run("ip", "link", "add", "prove0", "type", "dummy")


for _name, _number, _kind in (
    ("raw packets (AF_INET, SOCK_RAW)", 2, 3), ("packets of the wire (AF_PACKET)", 17, 3), ("the host of a virtual machine (AF_VSOCK)", 40, 1),
    ("the kernel's ciphers (AF_ALG)", 38, 5), ("AF_BLUETOOTH", 31, 3), ("AF_XDP", 44, 3), ("AF_CAN", 29, 3), ("AF_TIPC", 30, 2),
    ("AF_NETLINK, audit", 16, 3),
):  # fmt: skip

    @attempt("network", f"open a socket of {_name}")
    def _(number=_number, kind=_kind):
        socket.socket(number, kind, 9 if number == 16 else 0).close()
