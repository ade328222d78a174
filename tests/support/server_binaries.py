"""Installs real servers from their own registries, once, into the user's cache."""

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

GO = {
    "versitygw": "github.com/versity/versitygw/cmd/versitygw@v1.8.0",
    "fake-gcs-server": "github.com/fsouza/fake-gcs-server@v1.56.1",
}
NPM = {"azurite": "azurite@3.35.0"}


def cache():
    """The cache directory of the servers."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "podferry" / "servers"


def installed(name):
    """The server's program, built if it is missing.

    Raises:
        RuntimeError: Its tool is missing or the build fails: a missing server is a failure, never a skip.
    """
    version = (GO.get(name) or NPM[name]).rpartition("@")[2]
    home = cache() / f"{name}-{version}"
    program = home / (name if name in GO else f"node_modules/.bin/{name}-blob")
    if not program.exists():
        build = _go if name in GO else _npm
        _build(home, lambda folder: build(name, folder))
    return program


def _build(home, build):
    """Build into a folder next to `home` and rename it, so that a partial build is never used."""
    home.parent.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix=".building-", dir=home.parent))
    try:
        build(folder)
        if not home.exists():
            folder.rename(home)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _go(name, folder):
    _run(["go", "install", "-ldflags=-s -w", GO[name]], folder, GOBIN=str(folder), GOFLAGS="-mod=mod")


def _npm(name, folder):
    _run(["npm", "install", "--no-audit", "--no-fund", "--prefix", str(folder), NPM[name]], folder)


def _run(command, folder, **environ):
    if shutil.which(command[0]) is None:
        raise RuntimeError(f"{command[0]} is not installed: the tests against real servers need it")
    done = subprocess.run(
        command, cwd=folder, env={**os.environ, **environ}, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} failed:\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}")
