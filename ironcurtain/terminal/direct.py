"""Write at once, as far as that goes: who types or looks on does not wait for the reactor's next turn."""

from __future__ import annotations

from twisted.internet.abstract import FileDescriptor


def write_now(descriptor: FileDescriptor, data: bytes) -> None:
    """
    Write in place of :meth:`FileDescriptor.write`, which has the reactor watch the descriptor and waits for it to say
    that it can be written: that takes longer than all else about a key.

    :param descriptor: what it does not take now, it writes later, as always.
    """
    waits = descriptor.dataBuffer or descriptor._tempDataBuffer
    if descriptor.connected and not descriptor.disconnecting and not waits:
        written = descriptor.writeSomeData(data)
        if isinstance(written, int):  # else an end, which is found again
            data = data[written:]
    if data:
        FileDescriptor.write(descriptor, data)
