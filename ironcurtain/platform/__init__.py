"""
What differs between Linux and other systems, such as macOS, and nothing else: no other module asks which system it is.

Where a system lacks something, a function here does what comes nearest and says what that is. Kinds of sandboxes that
are parts of Linux need it (:func:`ironcurtain.platform.kernel.lacking`).
"""
