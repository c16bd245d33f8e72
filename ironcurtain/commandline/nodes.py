"""Kinds of nodes in the syntax trees of tree-sitter's grammar of bash."""

from __future__ import annotations

from ironcurtain.commandline.names import names

SEQUENCES = names(
    "program compound_statement subshell do_group if_statement elif_clause else_clause while_statement "
    "for_statement c_style_for_statement case_statement case_item negated_command binary_expression "
    "unary_expression ternary_expression postfix_expression parenthesized_expression subscript array "
    "variable_assignments process_substitution arithmetic_expansion simple_expansion concatenation string"
)
WORDS = ("word", "raw_string", "ansi_c_string")
LEAVES = names(
    "brace_expression extglob_pattern number regex special_variable_name string_content test_operator "
    "variable_name heredoc_content"
)
COMMANDS = ("command", "declaration_command", "unset_command")
REDIRECTS = ("file_redirect", "herestring_redirect", "heredoc_redirect")
