"""A table of common programs: what they do with their arguments."""

from __future__ import annotations

from enum import Enum, auto

from ironcurtain.commandline.model import Word


class Use(Enum):
    """What a program does with its operands."""

    TEXT = auto()
    """They are text; the program touches no files."""
    READ = auto()
    READ_TREES = auto()
    """It reads files, and what is below directories."""
    WRITE = auto()
    COPY = auto()
    """It reads them, and writes the last one."""
    MOVE = auto()
    DELETE = auto()
    NETWORK = auto()
    PRIVILEGE = auto()
    INSTALL = auto()
    """It changes the system with what it gets from the network."""
    DESTRUCTIVE = auto()
    """It destroys something else than files: processes, accounts, file systems."""
    UNKNOWN = auto()


_TABLE: dict[Use, str] = {
    Use.TEXT: (
        "echo printf true false : test [ [[ seq sleep cal expr factor basename dirname pwd command journalctl "
        "dmesg whoami id uname uptime free nproc arch logname groups users who w last printenv locale type which "
        "whereis tput clear jobs times dirs date tr yes env tty ps pstree top "
        "vmstat iostat lsb_release lscpu lsblk lspci lsusb lsmod getconf apropos whatis history count "
        "pgrep pidof jot numfmt cd netstat ss"
    ),
    Use.READ: (
        "cat bat head tail more wc ls ll la dir vdir stat file du df grep egrep fgrep zgrep cut sort uniq diff cmp "
        "comm md5sum sha1sum sha224sum sha256sum sha384sum sha512sum b2sum cksum sum od hexdump hd xxd strings nl "
        "tac fold fmt pr column paste join jq realpath readlink lsof base64 base32 zcat bzcat xzcat lsattr "
        "getfacl namei test exa eza lsd find gfind man less rev"
    ),
    Use.READ_TREES: "rg ag tree fd fdfind",
    Use.WRITE: "touch mkdir tee mktemp mkfifo mknod chmod chown chgrp split setfacl chattr gzip gunzip bzip2 bunzip2 "
    "xz unxz zstd tar bsdtar zip unzip",
    Use.COPY: "cp install ln link",
    Use.MOVE: "mv rename",
    Use.DELETE: "rm rmdir unlink shred truncate wipe srm trash dd wipefs blkdiscard mkswap fallocate",
    Use.NETWORK: (
        "curl wget ssh slogin scp sftp rsync ftp lftp tftp nc ncat netcat socat telnet ping ping6 dig nslookup host "
        "whois traceroute tracepath mtr http https xh aria2c git-remote-https nmap"
    ),
    Use.PRIVILEGE: (
        "sudo doas su runuser pkexec chroot nsenter unshare mount umount modprobe insmod rmmod sysctl useradd adduser "
        "usermod groupadd passwd chpasswd visudo chsh chfn iptables ip6tables nft ufw firewall-cmd setcap loginctl "
        "timedatectl hostnamectl localectl update-alternatives ldconfig dpkg-reconfigure"
    ),
    Use.DESTRUCTIVE: (
        "kill killall pkill skill shutdown reboot halt poweroff init telinit fdisk sfdisk gdisk sgdisk cfdisk parted "
        "cryptsetup lvremove vgremove pvremove hdparm userdel deluser groupdel swapoff mkfs fsck tune2fs "
        "debugfs xkill"
    ),
}

PROGRAMS: dict[str, Use] = {name: use for use, names in _TABLE.items() for name in names.split()}
"""The use that each known program makes of its operands."""

UNSAFE_OPTIONS: dict[str, tuple[str, ...]] = {
    "sort": ("-o", "--o", "--compress-program", "-T", "--files0-from"),
    "rg": ("--pre", "--hostname-bin"),
    "fd": ("-x", "-X", "--exec"),
    "fdfind": ("-x", "-X", "--exec"),
    "lsof": ("-D",),
    "tree": ("-o", "-R"),
    "file": ("-C", "--compile", "-f", "--files-from"),
    "jq": ("-f", "--from-file", "-L", "--library-path"),
    "top": ("-w",),
    "ss": ("-K", "--kill", "-D", "--diag"),
    "bat": ("--pager", "--build", "--clear", "--config-file", "--generate-config-file"),
    "tput": ("-T",),
    "clear": ("-T",),
    "ag": ("--pager",),
    "journalctl": (
        "--cursor-file",
        "--vacuum",
        "--rotate",
        "--flush",
        "--update",
        "--setup",
        "--sync",
        "--relinquish",
        "--smart",
    ),
    "dmesg": ("-C", "-c", "-D", "-E", "-n", "--clear", "--read-clear", "--console"),
    "tar": (
        "--rmt-command",
        "-I",
        "-F",
        "-P",
        "-T",
        "--files-from",
        "--use-compress-program",
        "--checkpoint-action",
        "--to-command",
        "--rsh-command",
        "--info-script",
        "--new-volume-script",
        "--absolute-names",
        "-W",
    ),
    "bsdtar": ("-P", "-T", "-I", "-W", "--files-from", "--use-compress-program"),
    "ar": ("-M", "@", "--plugin"),
    "jar": ("-J", "@"),
    "xz": ("--files",),
    "unxz": ("--files",),
    "zstd": ("--filelist",),
    "unzstd": ("--filelist",),
    "zip": ("-T", "-TT", "--unzip-command", "-m", "--move", "-@", "--names-stdin"),
    "cp": ("--backup", "-b"),
    "install": ("-s", "--strip-program"),
    "scp": ("-S", "-o", "-F"),
    "sftp": ("-S", "-o", "-F", "-b"),
    "rsync": (
        "-e",
        "-M",
        "-T",
        "--rsh",
        "--rsync-path",
        "--remote-option",
        "--log-file",
        "--write-batch",
        "--only-write-batch",
        "--read-batch",
        "--backup-dir",
        "--partial-dir",
        "--temp-dir",
        "--daemon",
        "--config",
        "--files-from",
    ),
    "curl": ("-K", "--config"),
    "wget": ("-e", "--execute", "--use-askpass", "--config", "-i", "--input-file"),
    "nc": ("-e", "-c", "--exec", "--sh-exec"),
    "ncat": ("-e", "-c", "--exec", "--sh-exec", "--lua-exec"),
    "socat": ("",),
    "lftp": ("",),
    "xh": ("",),
    "split": ("--filter",),
    "systemctl": ("-H", "--host", "-M", "--machine", "--root", "--image"),
    "docker": ("-H", "--host", "-c", "--context", "--config"),
    "kubectl": ("--kubeconfig", "-s", "--server", "--cache-dir"),
    "apt": ("-o", "-c", "--option", "--config-file"),
    "pip": ("--python", "--log", "--cache-dir"),
    "npm": ("--prefix", "-C", "--script-shell", "--userconfig", "--globalconfig", "--node-options", "--cache"),
    "cargo": ("--config", "-C", "-Z", "+"),
}
"""
Options with which a program does something else than the table says: run a command, write a file, set something, or use
files that its arguments do not name.
"""

SAFE_ARGUMENTS: dict[str, str] = {
    "man": r"-[kfw]|[\w.+:][\w.+:-]*",
    "less": r"-[NSRFXIiMmnqsEe]+|[^+-].*",
    "more": r"-[dflpsu]+|[^+-].*",
    "xxd": r"-[abCeEiPpu]+|-[cgls][0-9]+|[^-].*",
    "date": r"-[uR]|-I\w*|--utc|--iso-8601|--rfc-3339=\w+|-d.+|--date=.+|\+.*",
}
"""The arguments that a program may have, where most of its options do something else than read."""

SUBCOMMANDS: dict[str, tuple[dict[Use, str], Use]] = {
    "systemctl": (
        {
            Use.TEXT: "status show cat list-units list-unit-files list-timers list-sockets is-active is-enabled "
            "is-failed"
        },
        Use.PRIVILEGE,
    ),
    "service": ({}, Use.PRIVILEGE),
    "docker": (
        {
            Use.TEXT: "ps images logs inspect version info top stats port diff events search history",
            Use.DESTRUCTIVE: "rm rmi kill stop restart prune",
            Use.INSTALL: "pull push login",
            Use.PRIVILEGE: "logout tag start pause unpause",
        },
        Use.UNKNOWN,
    ),
    "apt": (
        {Use.TEXT: "list search show policy depends rdepends", Use.DESTRUCTIVE: "remove purge autoremove autopurge"},
        Use.INSTALL,
    ),
    "brew": ({Use.TEXT: "list search info deps outdated config doctor"}, Use.UNKNOWN),
    "pip": ({Use.TEXT: "list show freeze check"}, Use.UNKNOWN),
    "npm": ({Use.TEXT: "ls list root prefix"}, Use.UNKNOWN),
    "cargo": ({Use.TEXT: "locate-project"}, Use.UNKNOWN),
    "kubectl": (
        {Use.NETWORK: "get describe logs version top explain api-resources", Use.DESTRUCTIVE: "delete drain"},
        Use.UNKNOWN,
    ),
    "gh": ({}, Use.UNKNOWN),
    "zfs": ({Use.TEXT: "list get", Use.DESTRUCTIVE: "destroy rollback"}, Use.PRIVILEGE),
    "zpool": ({Use.TEXT: "list status get iostat", Use.DESTRUCTIVE: "destroy labelclear"}, Use.PRIVILEGE),
    "crontab": ({}, Use.UNKNOWN),
    "getent": (
        {Use.TEXT: "aliases group gshadow initgroups netgroup passwd protocols rpc services shadow"},
        Use.NETWORK,
    ),
}
"""By subcommand, what programs do; and what their other subcommands do."""

SUBCOMMANDS |= {
    "podman": SUBCOMMANDS["docker"],
    "apt-get": SUBCOMMANDS["apt"],
    "dnf": SUBCOMMANDS["apt"],
    "yum": SUBCOMMANDS["apt"],
    "pip3": SUBCOMMANDS["pip"],
}

UNSAFE_OPTIONS |= {
    "gtar": UNSAFE_OPTIONS["tar"],
    "podman": UNSAFE_OPTIONS["docker"],
    "apt-get": UNSAFE_OPTIONS["apt"],
    "dnf": UNSAFE_OPTIONS["apt"],
    "yum": UNSAFE_OPTIONS["apt"],
    "pip3": UNSAFE_OPTIONS["pip"],
}

_STANDARD = frozenset(
    (
        "/bin",
        "/sbin",
        "/usr/bin",
        "/usr/sbin",
        "/usr/local/bin",
        "/usr/local/sbin",
        "/opt/homebrew/bin",
        "/run/current-system/sw/bin",
    )
)


def program(word: Word) -> str | None:
    """
    :param word: the first of a command.
    :returns: the name of the program; ``None`` for one in a directory where anybody may have put it.
    """
    directory, slash, name = word.text.rpartition("/")
    if not word.known or (slash and directory not in _STANDARD):
        return None
    return "mkfs" if name.startswith("mkfs.") else name
