"""Language models behind one small interface: value types, wire formats, the HTTPS provider, the scripted provider."""
