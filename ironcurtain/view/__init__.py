"""Events, escalations, plans and steps as lines with meaning, for all front ends."""
