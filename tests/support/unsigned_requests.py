"""Builds unsigned requests for servers of the tests; `prefork_program.py` needs them outside of pytest."""

from podferry.storage.request_builder import Origin, if_match_line, range_line


class UnsignedRequestBuilder:
    """See `podferry.storage.request_builder.RequestBuilder`."""

    def __init__(self, port, *, checksum_needs_head=False, ca="", proxy=None):
        self.origin = Origin("127.0.0.1", port, tls=bool(ca), ca=ca, proxy=proxy)
        self.checksum_needs_head = checksum_needs_head

    async def prepare(self, entries):
        pass

    def build(self, entry, start, length, method="GET"):
        lines = f"Host: x\r\n{range_line(entry, start, length)}{if_match_line(entry.tag)}"
        return f"{method} /{entry.name} HTTP/1.1\r\n{lines}\r\n".encode()
