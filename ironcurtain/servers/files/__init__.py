"""
A file server that cannot be led out of its directories.

It has the tool names and arguments of the reference file system server of the Model Context Protocol, and two more for
deleting. A path is walked one component at a time from a directory that was opened at start, and no symbolic link is
followed anywhere: the proxy in front of it has resolved links already, so one that appears now was put there since.
What this cannot see: hard links that existed before, and directories that another process of the host moves during a
call.
"""
