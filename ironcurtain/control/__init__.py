"""The control API: the operations as HTTP with JSON on a UNIX socket, its server and its client."""
