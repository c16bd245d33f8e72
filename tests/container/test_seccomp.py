from __future__ import annotations

import json
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.sandbox.container_calls import profile

LEFT_OUT = """
_sysctl acct add_key afs_syscall bpf chroot clock_settime create_module delete_module fanotify_init finit_module
fsconfig fsmount fsopen fspick get_kernel_syms get_mempolicy getpmsg init_module io_uring_enter io_uring_register
io_uring_setup ioperm iopl kcmp kexec_file_load kexec_load keyctl lookup_dcookie mbind migrate_pages mount
mount_setattr move_mount move_pages name_to_handle_at nfsservctl open_by_handle_at open_tree perf_event_open
pidfd_getfd pivot_root process_madvise process_vm_readv process_vm_writev putpmsg query_module quotactl quotactl_fd
reboot request_key set_mempolicy setdomainname sethostname setns settimeofday swapoff swapon sysfs syslog umount
umount2 unshare uselib userfaultfd ustat vhangup
"""
"""All that the default of Docker 20.10 refuses without capabilities, and io_uring."""


class ProfileTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.profile: dict[str, Any] = json.loads(profile())
        self.rules = self.profile["syscalls"]
        self.free = [name for rule in self.rules if "args" not in rule for name in rule["names"]]

    def test_what_is_not_listed_is_refused(self) -> None:
        self.assertEqual(self.profile["defaultAction"], "SCMP_ACT_ERRNO")
        listed = {name for rule in self.rules for name in rule["names"]}
        self.assertEqual(listed & set(LEFT_OUT.split()), set())
        self.assertEqual(len(self.free), len(set(self.free)))

    def test_other_word_sizes_have_no_list(self) -> None:
        self.assertEqual([sorted(arch) for arch in self.profile["archMap"]], [["architecture"]] * 2)

    def test_some_calls_depend_on_their_arguments(self) -> None:
        limited = {"socket": {1, 2, 10, 16}, "personality": {0, 8, 0x20000, 0x20008, 0xFFFFFFFF}}
        for name, values in limited.items():
            rules = [rule for rule in self.rules if name in rule["names"]]
            self.assertEqual({rule["args"][0]["value"] for rule in rules}, values)
            self.assertEqual({rule["args"][0]["op"] for rule in rules}, {"SCMP_CMP_EQ"})
        [clone] = [rule for rule in self.rules if "clone" in rule["names"]]
        new_namespaces = 0x00020000 | 0x02000000 | 0x04000000 | 0x08000000 | 0x10000000 | 0x20000000 | 0x40000000
        self.assertEqual(
            clone["args"], [{"index": 0, "value": new_namespaces, "valueTwo": 0, "op": "SCMP_CMP_MASKED_EQ"}]
        )
        [clone3] = [rule for rule in self.rules if "clone3" in rule["names"]]
        self.assertEqual((clone3["action"], clone3["errnoRet"]), ("SCMP_ACT_ERRNO", 38))
