"""
Sandboxes by Landlock, a filter of system calls and resource limits, for machines that forbid namespaces.

``implementation`` belongs to the caller. The other modules run in a helper process, which imports nothing but Python's
own modules and starts in some 15 ms:

* ``start`` makes the sandbox and executes the program in it;
* ``guard`` stays outside, as the parent of all that the program starts, and ends it;
* ``broker`` changes permissions and times of files for the program, since the kernel would let it change those of any
  file of its account.
"""
