"""A holder fetches from the real server of each scheme, with keys of a Secret; a reader takes all from it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from podferry.contract.cache_api import STATUS_PATH
from tests.support.patience import PATIENCE
from tests.support.scheme_site import SCHEMES, Site

FILES = {"o d#d?/x#y?z %20&a+b": b"0123456789", "large.bin": bytes(range(256)) * 20_000}
TOTAL = sum(map(len, FILES.values()))
PROGRAM = [sys.executable, "-m", "podferry.cli.main"]
CERTIFICATES = ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE")
ENVIRONMENT = {"PATH": os.environ["PATH"], "HOME": "/nonexistent"}


@pytest.fixture
def site(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Site]:
    with ExitStack() as stack:
        found = Site(request, tmp_path, stack)
        for name, data in FILES.items():
            (found.files / name).parent.mkdir(parents=True, exist_ok=True)
            (found.files / name).write_bytes(data)
        yield found


def secret_options(variables: Mapping[str, str], folder: Path) -> list[str]:
    """Of commands: a Secret as the kubelet mounts it, a file for each key, certificates as `ca.crt`."""
    if not variables:
        return []
    folder.mkdir()
    for name, value in variables.items():
        is_path = name in CERTIFICATES
        (folder / ("ca.crt" if is_path else name)).write_text(Path(value).read_text() if is_path else value)
    return ["--secret-dir", str(folder)]


@contextmanager
def holder(*words: str) -> Iterator[str]:
    """The URL of a holder that has the dataset."""
    command = [*PROGRAM, "cache", "serve", *words, "--port", "0"]
    process = subprocess.Popen(command, env=ENVIRONMENT, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    lines: list[str] = []
    try:
        for line in process.stderr:
            lines.append(line)
            if "dataset complete" in line:
                break
        found = re.search(r"address (127.0.0.1:[0-9]+)", "".join(lines))
        assert found, lines
        yield f"http://{found[1]}"
    finally:
        process.terminate()
        process.communicate(timeout=PATIENCE)


def called(*words: str) -> None:
    """Run `podferry`; a failure or a hang fails the test."""
    command = [*PROGRAM, *words]
    done = subprocess.run(
        command, env=ENVIRONMENT, capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    assert done.returncode == 0, done.stderr


def status(url: str) -> Any:
    with urllib.request.urlopen(f"{url}{STATUS_PATH}", timeout=PATIENCE) as response:  # noqa: S310 - loopback
        return json.load(response)


@pytest.mark.parametrize("scheme", [scheme.names[0] for scheme in SCHEMES])
async def test_a_reader_takes_everything_from_the_holder(scheme: str, site: Site, tmp_path: Path) -> None:
    uri = site.uri(scheme)
    await site.put(uri)
    options = [*site.options, *secret_options(site.variables, tmp_path / "secret")]
    with holder(str(uri), str(tmp_path / "held"), *options) as url:
        called("dataset", "get", "--cache", url, str(uri), str(tmp_path / "got"), *options)
        found = status(url)
    assert {name: (tmp_path / "got" / name).read_bytes() for name in FILES} == FILES
    [dataset] = found["datasets"]
    assert dataset["bytes_done"] == found["served_bytes"] == TOTAL  # so the source gave each byte once
