"""
The policy engine: rules by argument role, and invariants that no rule can override.
"""
