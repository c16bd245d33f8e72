"""The home directory: what lies where, the settings, and the registry of live sessions."""
