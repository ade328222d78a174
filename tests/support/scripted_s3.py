"""A scripted S3 server for multipart uploads, with the various responses of S3 services."""

from aiohttp import web

from podferry.storage.checksum.checksums import crc64
from podferry.storage.multipart import UploadedPart

STARTED = "<InitiateMultipartUploadResult><UploadId>id&amp;1</UploadId></InitiateMultipartUploadResult>"
DONE = "<CompleteMultipartUploadResult/>"
KNOWS = {"x-amz-checksum-algorithm": "CRC64NVME"}
CHECKSUM = "x-amz-checksum-crc64nvme"
DATA = b"0123456789"
RECEIPT = UploadedPart(1, '"781e5e245d69b566979b86e28d23f2c7"', crc64(DATA), len(DATA))


def error(status, code):
    return web.Response(status=status, text=f"<Error><Code>{code}</Code></Error>")


def kind_of(request):
    """The call that a request belongs to."""
    if "uploads" in request.query:
        return "begin"
    names = {"PUT": "send", "POST": "complete", "DELETE": "abort", "HEAD": "stat", "GET": "list"}
    return names[request.method]


def there(size=10, **headers):
    found = {
        "Content-Length": str(size),
        **{name.replace("_", "-"): value for name, value in headers.items()},
    }
    return lambda: web.Response(headers=found)


class Server:
    """Responds from a table by call; the last response of a call is repeated."""

    def __init__(self):
        self.answers = {}
        self.seen = []

    async def answer(self, request):
        kind = kind_of(request)
        body = await request.read()
        self.seen.append((kind, request, body))
        planned = self.answers.get(kind) or [lambda: error(404, "NoSuchUpload")]
        made = (planned.pop(0) if len(planned) > 1 else planned[0])()
        if made is None:
            request.transport.abort()
            return web.Response()
        return made

    def of(self, kind):
        return [(request, body) for found, request, body in self.seen if found == kind]
