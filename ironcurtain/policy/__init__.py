"""
The policy engine: rules by argument role, and invariants that no rule can override.
"""

from ironcurtain.policy.annotations import Annotations
from ironcurtain.policy.engine import PolicyEngine
from ironcurtain.policy.rules import Policy
from ironcurtain.policy.verdict import Decision, Resource, ToolCall, Verdict

__all__ = ["Annotations", "Decision", "Policy", "PolicyEngine", "Resource", "ToolCall", "Verdict"]
