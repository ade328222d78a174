"""`sync` and `prepared` with an object store (moto, a stand-in) and a web server that states no ETag."""

# KFP reads annotations as values: no `from __future__ import annotations` here.
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from podferry.components import prepared
from podferry.components.data.sync.runner import Place, sync_dataset
from podferry.contract.dataset_reference import parse_reference
from tests.support.moto_server import moto_server
from tests.support.store_calls import KEYS


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    with moto_server("bucket") as (url, _):
        yield url


@pytest.fixture
def web(digits: Path) -> Iterator[str]:
    """The dataset on a web server with index pages."""

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            """Nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(digits)))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


def test_from_the_web_to_a_bucket_and_prepared_there(
    web: str, endpoint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in KEYS.items():
        monkeypatch.setenv(name, value)
    folder = f"s3://bucket/{tmp_path.name}"
    copy = Place(f"{folder}/copy", endpoint)
    done = sync_dataset(Place(web, endpoint), copy)
    assert (done.moved, done.bytes) == (3, 300)
    assert sync_dataset(Place(web, endpoint), copy).reference == done.reference
    assert sync_dataset(Place(web, endpoint), copy, size_only=True).kept == 3

    def convert() -> tuple[str, bool]:
        with prepared(done.reference, f"{folder}/prepared", {"size": 10}, endpoint=endpoint) as p:
            if p.needed:
                for path in p.source.iterdir():
                    (p.target / path.name).write_bytes(path.read_bytes()[:10])
        return p.reference, p.needed

    reference, needed = convert()
    assert (needed, parse_reference(reference).bytes) == (True, 30)
    assert convert() == (reference, False)
    assert sync_dataset(Place(reference, endpoint), Place(f"{folder}/last", endpoint)).bytes == 30
