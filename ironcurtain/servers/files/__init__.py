"""
A file server that cannot be led out of its directories.

It has the tool names and arguments of the reference file system server of the Model Context Protocol, and two more for
deleting. A path is opened one component at a time from a directory that was opened at start, and no symbolic link is
followed: the proxy has already resolved links, so a link now was created afterwards. It cannot detect hard links that
existed before, nor directories that another process of the host moves during a call.
"""
