"""
What a line of shell would run, as far as its text shows it.

A line of simple commands is read by a small grammar, which is understood whole in bash, zsh and fish. Any other line is
a doubt: a person has to look at it. Such a line is parsed with tree-sitter's grammar of bash, so that what is denied is
found in it all the same. Both are unwrapped: the reading of ``sudo env X=1 sh -c 'rm -rf /'`` contains ``rm -rf /``.
Aliases, functions and programs that the user's shell already has can change what a command means; no reading of the
text shows these.
"""

from ironcurtain.commandline.model import CommandLine, Match, SimpleCommand, Word
from ironcurtain.commandline.reading import read_command

__all__ = ["CommandLine", "Match", "SimpleCommand", "Word", "read_command"]
