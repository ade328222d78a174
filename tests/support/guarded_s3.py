"""S3 services that each accept one access key, in front of one server that accepts any."""

from __future__ import annotations

import http.client
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.support.patience import PATIENCE

REFUSAL = (
    b"<Error><Code>InvalidAccessKeyId</Code><Message>The AWS Access Key Id you provided does not exist in "
    b"our records.</Message></Error>"
)
HOP_HEADERS = {"connection", "transfer-encoding", "content-length", "keep-alive", "server", "date"}


@contextmanager
def guarded_s3(behind: str, access_key: str) -> Iterator[str]:
    """Serve the S3 server at `behind` (`http://host:port`) to those who sign with a key; yields the URL."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _serve(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            if f"Credential={access_key}/" not in self.headers.get("Authorization", ""):
                self._answer(403, {}, REFUSAL)
                return
            server = http.client.HTTPConnection(behind.removeprefix("http://"), timeout=PATIENCE)
            try:
                server.request(self.command, self.path, body, dict(self.headers))
                answer = server.getresponse()
                fields = {k: v for k, v in answer.getheaders() if k.lower() not in HOP_HEADERS}
                if self.command == "HEAD":
                    fields["Content-Length"] = answer.getheader("Content-Length", "0")
                self._answer(answer.status, fields, answer.read())
            finally:
                server.close()

        def _answer(self, status: int, fields: dict[str, str], body: bytes) -> None:
            self.send_response(status)
            for name, value in fields.items():
                self.send_header(name, value)
            if "Content-Length" not in fields:
                self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_PUT = do_POST = do_HEAD = do_DELETE = _serve  # noqa: N815 - names of http.server

        def log_message(self, *arguments: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
