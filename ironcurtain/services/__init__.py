"""What services are made of: ordered start and stop, UNIX sockets, systemd, asyncio."""
