"""The network as a resource of the policy: who may reach which host, and how connections leave this machine."""
