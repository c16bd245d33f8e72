"""The home directory: its layout, the settings, and the registry of live sessions."""
