"""Responses of broken servers, as bytes: imported by the tests that fuzz the connection pool.

Wherever only a careless reader would look, the bytes are POISON: a response that is accepted in spite of its
defect shows in the staged file. If the right data is sent in an unusual way, both accepting and refusing it
are right.
"""

from itertools import cycle

from tests.support.http_answers import TAG, Answer, good, head, poison


def good_and_closed(request, number):
    return Answer(
        head(request, ("Connection: close", "connection:  Close ")[number % 2]) + request.data, "close"
    )


def oddly_written(request, number):
    """Right, but unusual."""
    count = len(request.data)
    length = (f"{count} ", f"00{count}", f"\t{count}")[number % 3]
    return Answer(head(request, length=length) + request.data)


def wrong_length(request, number):
    """Shorter, longer, or no number at all."""
    count = len(request.data)
    wrong = (
        *(count - 1, count + 1, 0, -count, f"+{count}", f"0x{count:x}", f"{count}.0", f"{count},{count}"),
        *(f"{count} {count}", f"{count};", "9" * 30, f"-{count}", " ", "", f"{count}\0", f"\x0b{count}"),
        *(f"{count}\r", f"{count}\x85", "\xb2", f"{count + (1 << 32)}", f"{count + (1 << 64)}", f"'{count}'"),
    )
    then = ("keep", "close")[number // len(wrong) % 2]
    return Answer(head(request, length=wrong[number % len(wrong)]) + poison(count), then)


def two_lengths(request, number):
    count = len(request.data)
    other = (count + 1, count - 1, 0, -1)[number % 4]
    both = ((other, count), (count, other))[number // 4 % 2]
    spelled = ("Content-Length", "content-length", "CONTENT-LENGTH")[number % 3]
    return Answer(head(request, f"{spelled}: {both[0]}", length=both[1]) + poison(count))


def early_end(request, number):
    """In the head, or in the body."""
    response = head(request) + poison(len(request.data))
    return Answer(response[: number * 37 % len(response)], ("close", "reset", "hold")[number % 3])


def nothing(request, number):
    return Answer(b"", ("close", "reset", "hold")[number % 3])


def too_much(request, number):
    """If it arrives a moment later, the response before it is right."""
    extra = (poison(1), poison(1000), b"\r\n", b"\0")[number % 4]
    return Answer(head(request) + request.data + extra, ("keep", "close")[number // 4 % 2])


def surplus_answer(request, number):
    """A second response without a request, with another object."""
    second = head(request, tag='"other"') + poison(len(request.data))
    return Answer(head(request) + request.data + second)


def interim(request, number):
    """A 1xx first: a careless reader takes its lines for those of the response."""
    count = len(request.data)
    lines = ("HTTP/1.1 100 Continue", "HTTP/1.1 103 Early Hints\r\nLink: <x>", "HTTP/1.1 102 Processing")
    front = lines[number % 3] + ("", f"\r\nContent-Length: {count}")[number // 3 % 2]
    return Answer(front.encode() + b"\r\n\r\n" + head(request) + poison(count))


def chunked(request, number):
    """With a length that agrees, as some proxies send it; the chunks' own lines are of that length."""
    count = len(request.data)
    written = (
        *("Transfer-Encoding: chunked", "transfer-encoding:chunked", "Transfer-Encoding: gzip, chunked"),
        *(
            "Transfer-Encoding : chunked",
            "Transfer-Encoding: identity",
            "X: y\r\n Transfer-Encoding: chunked",
        ),
        *(
            "Transfer-Encoding:\x0bchunked",
            "Transfer-Encoding\t: chunked",
            "X: y\nTransfer-Encoding: chunked",
        ),
    )
    line = written[number % len(written)]
    body = b"%x\r\n%s\r\n0\r\n\r\n" % (count, poison(count))
    length, sent = (("", body), (count, body), (len(body), body), (count, body[:count]))[number // 9 % 4]
    return Answer(head(request, line, length=length) + sent)


def other_version(request, number):
    count = len(request.data)
    known = ("HTTP/1.0 200 OK", "HTTP/2 200", "HTTP/1.1 2000 OK", "HTTP/1.1200 OK", "http/1.1 200 OK")
    more = ("ICY 200 OK", "HTTP/1.1  200 OK", " HTTP/1.1 200 OK", "HTTP/1.12 200 OK", "HTTP/1.1 200\tOK")
    status = (*known, *more)[number % 10]
    return Answer(head(request, status=status) + poison(count), ("keep", "close")[number // 10 % 2])


def other_status(request, number):
    known = (201, 203, 204, 205, 207, 226, 300, 301, 302, 304, 307, 400, 401, 403, 404, 408, 409, 412, 416)
    status = (*known, 429, 500, 502, 503, 504, 600, 999, 20, 2)[number % 28]
    return Answer(head(request, status=f"HTTP/1.1 {status} X") + poison(len(request.data)))


def folded(request, number):
    """A continued line: obsolete, and read in two ways."""
    count = len(request.data)
    lines = (
        *("X: y\r\n z: 1", "X: y\r\n\tContent-Length: 0", " X: y", f"Content-Length:\r\n {count}"),
        *("X: y\r\n ", "\r X: y", "X", ": x", "X y: z ", "\0: x", "Content-Encoding:\r\n gzip"),
    )
    return Answer(head(request, lines[number % len(lines)]) + poison(count))


def bare_line_ends(request, number):
    """LF or CR alone ends a line for some readers: the body starts elsewhere for them."""
    count = len(request.data)
    plain = head(request)
    kinds = (
        plain.replace(b"\r\n", b"\n"),
        plain.replace(b"\r\n", b"\n", 1),
        plain.replace(b"\r\n", b"\r", 1),
        plain.replace(b"\r\n", b"\r\r\n", 1),
        plain.replace(b"\r\n", b"\nX: y\n\nabc\r\n", 1),
        plain.replace(b"\r\n", b"\rX: y\r\n", 1),
        head(request, "X: y\n\nabc"),
        head(request, "X: y\rContent-Encoding: gzip"),
        plain.replace(b"\r\n\r\n", b"\n\r\n"),
    )
    return Answer(kinds[number % len(kinds)] + poison(count), ("keep", "close")[number // len(kinds) % 2])


def other_range(request, number):
    """For an object: a part of it; for a range: another one, all of it, or no range."""
    count, size, last = len(request.data), request.size, request.start + len(request.data) - 1
    if request.complete:
        line = (f"bytes 0-{last}/{size}", f"bytes 0-{last}/*", f"bytes 0-{last}/{size + 1}")[number % 3]
        return Answer(head(request, f"Content-Range: {line}", status="HTTP/1.1 206 X") + poison(count))
    wrong = (
        *(f"bytes {request.start + 1}-{last + 1}/{size}", f"bytes 0-{count - 1}/{size + 1}", "bytes */5", ""),
        *(
            f"bytes {request.start}-{last}/{size + 1}",
            f"bytes {request.start}-{last}/*",
            f"{request.range}, 0-0/1",
        ),
        *(
            f"octets {request.start}-{last}/{size}",
            f"bytes={request.start}-{last}/{size}",
            f"bytes {last}-{last}/1",
        ),
    )
    kind = number % (len(wrong) + 5)
    if kind < len(wrong):
        return Answer(head(request, f"Content-Range: {wrong[kind]}", ranged=False) + poison(count))
    kinds = (
        head(request, ranged=False),
        head(request, "Content-Range: bytes 0-0/1"),
        head(request, status="HTTP/1.1 200 OK"),
        head(request, status="HTTP/1.1 200 OK", ranged=False),
        head(request, status="HTTP/1.1 200 OK", length=size, ranged=False) + poison(size - count),
    )
    return Answer(kinds[kind - len(wrong)] + poison(count))


def coded(request, number):
    count = len(request.data)
    lines = (
        *("Content-Encoding: gzip", "content-encoding:br", "Content-Encoding: identity, gzip"),
        *("Content-Encoding: gzip\r\nContent-Encoding: identity", "Content-Encoding: aws-chunked,gzip"),
        *("Content-Encoding: identity\r\nContent-Encoding: gzip", "Content-Encoding: GZIP"),
    )
    return Answer(head(request, lines[number % len(lines)]) + poison(count))


def other_object(request, number):
    tags = ('"other"', 'W/"tag"', '"TAG"', '"tags"', '""', f"{TAG}\r\nETag: {TAG}")
    lines = (['ETag: "other"'], [])[number // len(tags) % 2]
    return Answer(
        head(request, *lines, tag=tags[number % len(tags) if not lines else 0]) + poison(len(request.data))
    )


def without_end(request, number):
    """A head that does not end, or is too long."""
    lines = cycle([b"X: y\r\n", b"y" * 500])
    long = b"HTTP/1.1 200 OK\r\n" + b"".join(next(lines) for _ in range(2 * (number % 300)))
    return Answer(long, ("close", "hold")[number % 2])


def long_head(request, number):
    """Longer than any server's, to fill a buffer to the last byte."""
    plain = head(request, "X: ")
    return Answer(
        plain.replace(b"X: ", b"X: " + b"y" * (128 * 1024 - len(plain) + number % 5 - 2)) + request.data
    )


def damaged(request, number):
    """The right head and checksum with other bytes; only for complete objects."""
    if not request.complete:
        return good(request, number)
    import zlib  # noqa: PLC0415
    from base64 import b64encode  # noqa: PLC0415

    crc = b64encode(zlib.crc32(request.data).to_bytes(4, "big")).decode()
    return Answer(
        head(request, f"x-amz-checksum-crc32: {crc}", "x-amz-checksum-type: FULL_OBJECT")
        + poison(len(request.data))
    )


UNSTATED = (
    *(good, good_and_closed, oddly_written, wrong_length, two_lengths, early_end, nothing, too_much),
    *(surplus_answer, interim, chunked, other_version, other_status, folded, bare_line_ends, other_range),
    *(coded, other_object, without_end, long_head),
)
"""Defects that show in the head or in the length of the body."""
