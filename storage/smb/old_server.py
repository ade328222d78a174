"""Whether a server that ends the connection speaks nothing newer than SMB 1. Source: MS-CIFS 2.2.4.52."""

from __future__ import annotations

import asyncio
import struct
from contextlib import suppress

from podferry.storage.smb.frames import LENGTH

MAGIC = b"\xffSMB"
NEGOTIATE = 0x72
DIALECTS = (b"NT LM 0.12", b"SMB 2.002", b"SMB 2.???")
"""A server that speaks SMB 2 chooses one of the last two, and answers with a message of that."""
_HEADER = struct.Struct("<4sBIBH12sHHHH")


def question() -> bytes:
    """A request of SMB 1 for a dialect, with its length."""
    dialects = b"".join(b"\x02" + name + b"\0" for name in DIALECTS)
    header = _HEADER.pack(MAGIC, NEGOTIATE, 0, 0x18, 0xC801, bytes(12), 0, 0, 0, 0)
    message = header + struct.pack("<BH", 0, len(dialects)) + dialects
    return len(message).to_bytes(LENGTH, "big") + message


async def speaks_only_smb_1(host: str, port: int, seconds: float) -> bool:
    """Ask over a connection of its own; false if there is no answer."""
    with suppress(OSError, TimeoutError, asyncio.IncompleteReadError):
        async with asyncio.timeout(seconds):
            reader, writer = await asyncio.open_connection(host, port)
            try:
                writer.write(question())
                answer = await reader.readexactly(LENGTH + len(MAGIC))
            finally:
                writer.close()
            return answer[LENGTH:] == MAGIC
    return False
