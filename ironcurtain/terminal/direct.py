"""A descriptor of the reactor that writes at once."""

from __future__ import annotations

from twisted.internet.abstract import FileDescriptor


class DirectDescriptor(FileDescriptor):
    """
    Writes what the kernel takes within :meth:`write`, without a turn of the reactor; it queues only the rest. A key and
    its echo are shown earlier, and much output costs fewer system calls.
    """

    _queues = False

    def write(self, data: bytes) -> None:
        """:param data: written now, or once the other side takes it."""
        if data and self.connected and not self._queues and not self.disconnecting:
            done = self.writeSomeData(data)
            data = data[done:] if isinstance(done, int) else data  # what has failed now fails again
        if data:
            super().write(data)

    def startWriting(self) -> None:
        """For the transport's buffer: it has data."""
        self._queues = True
        super().startWriting()

    def stopWriting(self) -> None:
        """For the transport's buffer: it has none."""
        self._queues = False
        super().stopWriting()
