"""A stand-in for the API server, for the few requests of a pod about pods."""

from __future__ import annotations

import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from podferry.trainer.pod_api import PodApi


class StandInApiServer:
    """Answers with what `answers` has for a path, else with 404; `asked` has the requests.

    Attributes:
        answers: Status and body by path without query.
        asked: Paths with query, and the Authorization headers.
        api: A client.
    """

    def __init__(self, account: Path) -> None:
        self.answers: dict[str, tuple[int, bytes]] = {}
        self.asked: list[tuple[str, str]] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                outer.asked.append((self.path, self.headers["Authorization"]))
                status, body = outer.answers.get(self.path.partition("?")[0], (404, b"no such"))
                self.send_response(status)
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.api = PodApi(f"http://127.0.0.1:{self.server.server_address[1]}", account)

    def has(self, path: str, document: object) -> None:
        self.answers[f"/api/v1/namespaces/team/{path}"] = (200, json.dumps(document).encode())

    def forbids(self, path: str) -> None:
        self.answers[f"/api/v1/namespaces/team/{path}"] = (403, b'{"message": "forbidden"}')


@pytest.fixture
def api_server(tmp_path: Path) -> Iterator[StandInApiServer]:
    account = tmp_path / "account"
    account.mkdir()
    (account / "token").write_text("t0ken\n")
    (account / "namespace").write_text("team")
    found = StandInApiServer(account)
    thread = Thread(target=found.server.serve_forever)
    thread.start()
    yield found
    found.server.shutdown()
    thread.join()
    found.server.server_close()
