"""OSS: an imitation of it, and Alibaba's SDK; `ossutil` is in no package registry."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path

from sources.row import Served, Source

ROOT = Path(__file__).parents[2]
REGION = "cn-hangzhou"
KEYS = {"OSS_ACCESS_KEY_ID": "key-of-tests", "OSS_ACCESS_KEY_SECRET": "secret-of-tests", "OSS_REGION": REGION}
DOWNLOADER = str(Path(__file__).with_name("_oss_downloader.py"))


@contextmanager
def serve(files: Path, folder: Path) -> Iterator[Served]:
    del folder  # the objects are in the memory of the server
    words = [sys.executable, "-m", "tests.support.oss.server", "127.0.0.1", "0", str(files)]
    with subprocess.Popen(words, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None  # noqa: S101 - it is a pipe
            endpoint = json.loads(process.stdout.readline())["endpoint"]

            def peer(name: str, target: Path) -> list[str]:
                # -P: the directory of the script has an http.py of its own.
                return [sys.executable, "-P", DOWNLOADER, endpoint, REGION, "bucket", f"{name}/", str(target)]

            title = f"an imitation of OSS; alibabacloud-oss-v2 {version('alibabacloud-oss-v2')}"
            yield Served(title, "oss://bucket", peer, KEYS, ("--endpoint", endpoint))
        finally:
            process.terminate()


SOURCE = Source("Alibaba's SDK, 8 threads", serve)
