"""
What a line of shell would run, as far as its text shows it.

A line is parsed with tree-sitter's grammar of bash and unwrapped: the reading of ``sudo env X=1 sh -c 'rm -rf /'``
contains ``rm -rf /``. What the text does not show, such as a variable in the place of a command, is a doubt: a person
has to look at it. Aliases, functions and programs that the user's shell already has can change what a command means;
no reading of the text shows these.
"""

from ironcurtain.commandline.model import CommandLine, Match, SimpleCommand, Word
from ironcurtain.commandline.reading import read_command

__all__ = ["CommandLine", "Match", "SimpleCommand", "Word", "read_command"]
