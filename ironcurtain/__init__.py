"""IronCurtain: run AI agents that you do not have to trust."""

import gc
import os
import sys

__version__ = "0.2.0"


def import_only_installed() -> None:
    """
    Remove the current directory, and what ``PYTHONPATH`` names relative to it, from the places of modules.

    An agent may have written to it. To be called before other modules are imported, if Python was not started with
    ``-I``; it is too late for what Python itself has imported by then, such as ``sitecustomize``.
    """
    if sys.flags.isolated:
        return
    named = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    relative = {os.path.realpath(place) for place in ("", *named) if not os.path.isabs(place)}
    own = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    sys.path[:] = [place for place in sys.path if place == own or os.path.realpath(place) not in relative]


def look_for_garbage_late() -> None:
    """
    Look for garbage first when imports are over: what they make is none, and to look takes a tenth of their time.

    To be called before other modules are imported.
    """
    gc.set_threshold(200_000)  # a session makes 120 000 objects before its first answer
    gc.callbacks.append(_settle)


def _settle(phase: str, _: object) -> None:
    """After the first look for garbage, what is left is what this process needs: it is not looked at again."""
    if phase == "stop":
        gc.callbacks.remove(_settle)
        gc.freeze()
        gc.set_threshold(20_000)
