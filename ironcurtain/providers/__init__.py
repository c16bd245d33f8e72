"""The model providers that are known, one module each, and what an agent may ask of one."""
