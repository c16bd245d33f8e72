"""Find programs."""

from __future__ import annotations

import os
from collections.abc import Mapping

from ironcurtain.errors import NotFound


def find_program(name: str, environ: Mapping[str, str], directory: str) -> str:
    """
    :param name: a path, or a name that is searched for in the ``PATH`` of ``environ``.
    :param directory: the working directory, to which a relative path refers.
    :raises NotFound: there is no such command or directory.
    """
    if not os.path.isdir(directory):
        raise NotFound(f"there is no directory {directory}")
    places = [directory] if "/" in name else os.get_exec_path(environ)
    for program in (os.path.join(place, name) for place in places):
        if os.path.isfile(program) and os.access(program, os.X_OK):
            return program
    raise NotFound(f"there is no command {name}: check its name and PATH")
