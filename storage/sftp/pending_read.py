"""A range of a file that is read in many requests at once, over one connection after another if need be."""

from __future__ import annotations

import asyncio

from podferry.storage.sftp.channel import expect
from podferry.storage.sftp.client import SftpClient, seen
from podferry.storage.sftp.messages import ProtocolError, Request, Response, read_body, read_string


class PendingRead:
    """A range that is being read: it survives the connection that has read a part of it.

    Attributes:
        data: The bytes; those in `missing` have not arrived.
        end: Where the file ends, if within the range; otherwise the range's own end. Relative to `start`.
        missing: Length of what has not arrived, by its position.
        is_longer: Whether there are bytes behind a range that should be the file's last one.
    """

    def __init__(self, start: int, length: int, *, is_last: bool = False) -> None:
        """Prepare a read; of the last range one byte more is requested, which must not be there."""
        self.start, self.data, self.end = start, bytearray(length), length
        self.missing = {0: length + is_last} if length else {}
        self.is_longer = False

    def request(self, client: SftpClient, handle: bytes) -> asyncio.Future[None]:
        """Request what is missing; resolved when nothing is, or all of it is behind the end of the file."""
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        done.add_done_callback(seen)
        for position, length in list(self.missing.items()):
            del self.missing[position]
            for start in range(position, position + length, client.read_bytes):
                self.missing[start] = min(client.read_bytes, position + length - start)
        if not self.missing:
            done.set_result(None)
        for position, length in list(self.missing.items()):
            self._request_piece(client, handle, (position, length), done)
        return done

    def _request_piece(
        self, client: SftpClient, handle: bytes, piece: tuple[int, int], done: asyncio.Future[None]
    ) -> None:
        position, length = piece

        def handler(kind: int, data: memoryview) -> None:
            count = self._take(kind, data, position, length)
            if count < length:  # as a server may respond; the rest is requested as well
                rest = position + count, length - count
                self.missing[rest[0]] = rest[1]
                self._request_piece(client, handle, rest, done)
            elif not self.missing and not done.done():
                done.set_result(None)

        body = read_body(handle, self.start + position, length)
        client.channel.request(Request.READ, body, handler, done)

    def _take(self, kind: int, data: memoryview, position: int, length: int) -> int:
        """Take the bytes of a response; how many of the requested ones it settles."""
        try:
            expect(kind, Response.DATA, data, "")
        except EOFError:
            self.end, count = min(self.end, position), length
        else:
            found = read_string(data)
            count = len(found)
            if not 0 < count <= length:
                raise ProtocolError(f"{count} bytes where {length} were requested")
            room = len(self.data) - position
            self.is_longer = self.is_longer or count > room
            self.data[position : position + min(count, room)] = found[:room]
            if count == room:  # a short response at the end of the file: nothing is behind it
                count = length
        del self.missing[position]
        return count
