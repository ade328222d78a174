"""Each scheme of the engines opens, lists and reads a file on a real server, in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.support.scheme_site import SCHEMES, Site

NAME = "o d#d?/x#y?z %20&a+b"


@pytest.fixture
def site(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Site]:
    with ExitStack() as stack:
        found = Site(request, tmp_path, stack)
        (found.files / NAME).parent.mkdir(parents=True)
        (found.files / NAME).write_bytes(b"0123456789")
        yield found


def called(*words: str, variables: dict[str, str]) -> str:
    """What `podferry` prints; a failure or a hang fails the test."""
    command = [sys.executable, "-m", "podferry.cli.main", *words]
    environ = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", **variables}
    done = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("scheme", [scheme.names[0] for scheme in SCHEMES])
async def test_a_file_is_listed_and_read(scheme: str, site: Site, tmp_path: Path) -> None:
    uri = site.uri(scheme)
    await site.put(uri)
    assert NAME in called("dataset", "ls", str(uri), *site.options, variables=site.variables)
    called("dataset", "get", str(uri), str(tmp_path / "got"), *site.options, variables=site.variables)
    assert (tmp_path / "got" / NAME).read_bytes() == b"0123456789"
