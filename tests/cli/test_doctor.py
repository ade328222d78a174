import json
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest


class Busy(BaseHTTPRequestHandler):
    """Never has time."""

    def do_GET(self):
        self.send_error(503)

    do_HEAD = do_GET  # noqa: N815

    def log_message(self, *args):
        """Nothing."""


@pytest.fixture
def busy():
    with HTTPServer(("127.0.0.1", 0), Busy) as server:
        serving = threading.Thread(target=server.serve_forever)
        serving.start()
        yield f"http://127.0.0.1:{server.server_port}/x"
        server.shutdown()
        serving.join()


def test_a_line_for_each_check(podferry, tmp_path):
    (tmp_path / "a").write_bytes(b"0123456789")
    said = podferry("doctor", str(tmp_path), "--write")
    assert (said.code, said.err) == (0, "")
    assert [line.split()[:2] for line in said.out.splitlines()][:3] == [
        ["ok", "engine"],
        ["ok", "list"],
        ["ok", "read"],
    ]
    assert "ok       exclusive commit  1 of 8 writers" in said.out
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_a_failure_is_the_exit_code_and_has_a_remedy(podferry):
    said = podferry("doctor", "s4://bucket/x")
    assert (said.code, said.err) == (1, "")
    assert said.out.startswith("failed   engine            no engine opens s4://")
    assert "Did you mean 's3'?" in said.out


def test_as_json(podferry, tmp_path):
    found = json.loads(podferry("doctor", str(tmp_path), "-o", "json").out)
    assert [one["outcome"] for one in found if one["check"] == "list"] == ["limited"]
    assert set(found[0]) == {"check", "outcome", "measured", "remedy"}


def test_an_outage_is_a_finding_without_the_logs_of_its_retries(podferry, busy):
    said = podferry("doctor", busy, "-o", "json")
    assert (said.code, said.err) == (1, "")
    [listing] = [one for one in json.loads(said.out) if one["check"] == "list"]
    assert "HTTP 503" in listing["measured"]
