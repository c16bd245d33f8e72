"""The MITM proxy: judge requests to model providers, and replace the agent's fake key by the real one."""
