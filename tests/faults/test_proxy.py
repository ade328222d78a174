import contextlib
import http.client
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

import pytest

from faults.plan import Fault
from faults.proxy import proxy
from faults.rules import Rules
from tests.support.patience import PATIENCE

DATA = "/bucket/7/episode/x-1/last.pt"
COMMIT = "/bucket/7/episode/.podferry/commits/000000000001.json"
BODY = bytes(range(256)) * 1024
FAST = 1 << 40
CUT = (ConnectionError, http.client.HTTPException)


class Store(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_PUT(self):
        wanted = int(self.headers["Content-Length"])
        body = self.rfile.read(wanted)
        if len(body) == wanted:
            self.server.held[self.path] = body
        self._answer(b"")

    def do_GET(self):
        self._answer(self.server.held.get(self.path, BODY))

    def do_HEAD(self):
        self.send_response(200)
        self.send_header("Content-Length", "5")
        self.end_headers()

    def _answer(self, body):
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def handle(self):
        with contextlib.suppress(ConnectionError):  # the proxy cuts it off
            super().handle()

    def log_message(self, *_):
        pass


class World:
    def __init__(self, url, rules, held, saves):
        self.rules, self.held, self.saves = rules, held, saves
        self._address = urlsplit(url)

    def arm(self, kind, **more):
        self.rules.arm(Fault(kind, save=1, **more), time.monotonic() + 60)

    def ask(self, method="PUT", path=DATA, body=BODY):
        client = http.client.HTTPConnection(self._address.hostname, self._address.port, timeout=PATIENCE)
        try:
            client.request(method, path, body if method == "PUT" else None)
            answer = client.getresponse()
            return answer.status, answer.read()
        finally:
            client.close()


@pytest.fixture
def world():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Store)
    server.daemon_threads, server.held = True, {}
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    rules, saves = Rules(FAST), [0]
    try:
        with proxy(server.server_address[1], rules, lambda: saves[0]) as url:
            yield World(url, rules, server.held, saves)
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def test_without_faults_everything_passes(world):
    assert world.ask() == (200, b"")
    assert world.held == {DATA: BODY}
    assert world.ask("GET") == (200, BODY)
    assert world.ask("HEAD") == (200, b"")
    assert not world.rules.hits


@pytest.mark.parametrize(("kind", "status"), [("500", 500), ("503", 503), ("expired credentials", 403)])
def test_an_error_reaches_only_the_client(world, kind, status):
    world.arm(kind)
    assert world.ask()[0] == status
    assert not world.held
    assert world.rules.hits.total() == 1


def test_a_count_is_kept(world):
    world.arm("503", count=2)
    assert [world.ask()[0] for _ in range(3)] == [503, 503, 200]


def test_credentials_are_expired_until_they_are_renewed(world):
    world.arm("expired credentials")
    assert [world.ask()[0] for _ in range(3)] == [403] * 3
    world.rules.clear()
    assert world.ask()[0] == 200


def test_what_is_over_hits_nothing(world):
    world.rules.arm(Fault("500", save=1), time.monotonic() - 1)
    assert world.ask()[0] == 200


def test_a_fault_of_commits_leaves_data_alone(world):
    world.arm("500", commits=True)
    assert world.ask()[0] == 200
    assert world.ask(path=COMMIT)[0] == 500


@pytest.mark.parametrize("kind", ["reset in a request", "truncated request"])
def test_a_body_that_ends_early_is_not_stored(world, kind):
    world.arm(kind)
    with pytest.raises(CUT):
        world.ask()
    assert not world.held


def test_a_lost_answer_leaves_what_was_done(world):
    world.arm("lost answer")
    with pytest.raises(CUT):
        world.ask()
    assert world.held == {DATA: BODY}


def test_a_reset_in_an_answer(world):
    world.arm("reset in an answer")
    with pytest.raises(CUT):
        world.ask()


def test_an_answer_that_ends_early(world):
    world.arm("truncated answer")
    with pytest.raises(CUT):
        world.ask("GET")


def flipped(found, sent=BODY):
    return sum((one ^ other).bit_count() for one, other in zip(found, sent, strict=True))


@pytest.mark.parametrize("part", [0.0, 0.3, 1.0])
def test_a_bit_is_flipped_on_the_way_to_the_store(world, part):
    world.arm("flipped request", part=part)
    assert world.ask()[0] == 200
    assert flipped(world.held[DATA]) == 1


@pytest.mark.parametrize("part", [0.0, 0.3, 1.0])
def test_a_bit_is_flipped_on_the_way_back(world, part):
    world.arm("flipped answer", part=part)
    assert flipped(world.ask("GET")[1]) == 1


def test_a_list_is_never_flipped(world):
    world.arm("flipped answer")
    assert world.ask("GET", "/bucket?list-type=2&prefix=7") == (200, BODY)
    assert not world.rules.hits


@pytest.mark.parametrize(("part", "status"), [(0.2, 200), (0.8, 503)])
def test_a_body_is_held_until_its_file_was_overwritten(world, part, status):
    """It continues then, or must be sent again: both read the file again."""
    world.arm("overwrite in place", part=part)
    answers = []
    client = threading.Thread(target=lambda: answers.append(world.ask()[0]))
    client.start()
    while not world.rules.hits:
        time.sleep(0.01)
    assert not answers
    world.saves[0] += 1
    client.join()
    assert answers == [status]


def test_a_stall_ends(world):
    world.arm("stall", seconds=0.1)
    assert world.ask()[0] == 200
    assert world.rules.hits.total() == 1
