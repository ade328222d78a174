"""Shows the text pipeline: modules of Python's own library as text, from a web server on this machine."""

from __future__ import annotations

import asyncio
import sysconfig
import tempfile
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from demo.examples.example import Bucket, Findings, Outcome, Run
from podferry.contract.quantity import format_bytes
from podferry.contract.uri import parse_uri
from podferry.storage.factory import open_store
from podferry.storage.store import StoreConfig

MODULES = ("argparse", "ast", "datetime", "inspect", "subprocess", "tarfile", "turtle", "typing")
"""Of about 100 kB each."""
STEPS, FAIL_AT = 1200, 650
FAILED_CURVE = "curve-0.csv"
"""Of the attempt that began with step 0."""
MOST_BITS = 4.5
"""Bits per character: characters by their frequency alone take about 4.9."""


class Text:
    """See `demo.examples.example.Example`."""

    pipeline = "podferry.pipelines.text.pipeline:text"
    title = "Download, generate, train, upload: the outputs are saved although the training fails"
    imitated = ("the web server serves modules of Python's own library, from this machine.",)
    packages = ("numpy",)

    def __init__(self) -> None:
        self._source = ""
        self._sent: Counter[str] = Counter()

    def put(self, bucket: Bucket, stack: ExitStack) -> str:
        """Start the web server; nothing is in the bucket yet."""
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="podferry-demo-text-")))
        size = _write_texts(folder)
        self._source = stack.enter_context(_web_server(folder, self._sent))
        return f"{len(MODULES)} text files, {format_bytes(size)}, at {self._source}"

    def runs(self, bucket: Bucket) -> Sequence[Run]:
        """A run whose training fails, and the same run again."""
        given = {"source": self._source, "work": bucket.uri, "steps": STEPS, "fail_at": FAIL_AT}
        return [
            Run(f"Training fails before step {FAIL_AT + 1}", given, fails=True),
            Run("The same run again: nothing is downloaded twice, and it resumes", given),
        ]

    def findings(self, outcomes: Sequence[Outcome], bucket: Bucket) -> Findings:
        """What was uploaded, and how well the model predicts."""
        first, again = outcomes
        found = again.outputs
        curve = asyncio.run(_read(f"{bucket.uri}/outputs", FAILED_CURVE, bucket))
        rows = (
            ("failed before step", str(FAIL_AT + 1), "on purpose"),
            ("resumed after step", str(found["steps_before"]), "the newest checkpoint"),
            (
                "its curve",
                f"{len(curve.splitlines())} lines",
                f"saved all the same: {bucket.uri}/outputs/{FAILED_CURVE}",
            ),
            ("test text", f"{found['bits']:.2f} bits", "per character"),
            ("first run", f"{first.seconds:.1f} s", "with the download"),
            ("second run", f"{again.seconds:.1f} s", "files and arrays were there"),
        )
        return Findings(rows, list(_broken(found["steps_before"], found["bits"], self._sent)))


def _broken(steps_before: int, bits: float, sent: Counter[str]) -> Iterator[str]:
    if twice := sorted(name for name, count in sent.items() if count > 1):
        yield f"the web server sent {', '.join(twice)} more than once"
    if not 0 < steps_before <= FAIL_AT:
        yield f"the second run began after step {steps_before}, not between 1 and {FAIL_AT}"
    if bits > MOST_BITS:
        yield f"the test text takes {bits:.2f} bits per character, more than {MOST_BITS}"


def _write_texts(folder: Path) -> int:
    """Copy the modules as text files; their bytes."""
    library = Path(sysconfig.get_path("stdlib"))
    for name in MODULES:
        (folder / f"{name}.txt").write_bytes((library / f"{name}.py").read_bytes())
    return sum(path.stat().st_size for path in folder.iterdir())


class _Handler(SimpleHTTPRequestHandler):
    def __init__(self, *args: Any, sent: Counter[str], **more: Any) -> None:
        self._sent = sent
        super().__init__(*args, **more)

    def do_GET(self) -> None:
        if self.path.endswith(".txt"):
            self._sent[self.path.removeprefix("/")] += 1
        super().do_GET()

    def end_headers(self) -> None:
        """As most web servers, state a tag: without one, a file is downloaded in each run."""
        file = Path(self.translate_path(self.path))
        if file.is_file():
            self.send_header("ETag", f'"{file.stat().st_mtime_ns:x}-{file.stat().st_size:x}"')
        super().end_headers()

    def log_message(self, *_: object) -> None:
        """Requests are not the demo's output."""


@contextmanager
def _web_server(folder: Path, sent: Counter[str]) -> Iterator[str]:
    """Serve a directory, and count what is sent; its URL."""
    handler = partial(_Handler, directory=str(folder), sent=sent)
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/"
        finally:
            server.shutdown()
            thread.join()


async def _read(uri: str, name: str, bucket: Bucket) -> str:
    store = open_store(parse_uri(uri), StoreConfig(credentials=bucket.environ))
    try:
        return bytes(await store.read(name)).decode()
    finally:
        await store.close()


EXAMPLE = Text()
