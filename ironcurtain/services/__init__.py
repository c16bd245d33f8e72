"""Building blocks of services: ordered start and stop, UNIX sockets, systemd, asyncio."""
