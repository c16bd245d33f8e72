"""The known model providers, one module each, and what an agent may request of them."""
