"""The MITM proxy: requests to model providers are judged, and the real key takes the place of the agent's fake one."""
