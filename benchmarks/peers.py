"""Who fetches a set: the whole command of each, into a directory of its own in memory."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from harness import LIMIT, OURS, Command, Contest
from serving import BUCKET, HERE, Site, s5cmd

OURS_PROGRAM = os.environ.get("PODFERRY_PROGRAM", str(HERE / "podferry"))
"""What is timed: `make` installs it as users do, for an editable install takes longer to start."""
FETCHING = str(Path(__file__).with_name("fetching.py"))
QUICK = ("s5cmd",)
SLOW = ("s3fs", "boto3")
"""So slow that they run in fewer rounds, with ours again."""
EVERY = (*QUICK, *SLOW)


def commands(site: Site, prefix: str, peer: str, target: Path) -> list[str]:
    """A contestant's words."""
    uri = f"s3://{BUCKET}/{prefix}"
    python = [sys.executable, FETCHING, peer, site.endpoint, BUCKET, prefix, str(target)]
    words = {
        OURS: [OURS_PROGRAM, "dataset", "get", "--endpoint", site.endpoint, uri, str(target)],
        "s5cmd": s5cmd(site.endpoint, "cp", f"{uri}/*", f"{target}/"),
        LIMIT: ["cp", "-r", str(site.held / prefix), str(target)],
    }
    return words.get(peer, python)


def fetching(site: Site, prefix: str, peer: str, folder: Path) -> Command:
    """A contestant that downloads a prefix into `folder`; the result is compared, then removed."""
    target = folder / peer
    words = commands(site, prefix, peer, target)
    return downloading(peer, words, site.environment, site.held / prefix, target)


def downloading(
    name: str, words: Sequence[str], environment: Mapping[str, str], source: Path, target: Path
) -> Command:
    """A command that makes `target` of the files of `source`; the result is compared, then removed."""

    def clear() -> None:
        for path in (target, target.with_name(f"{target.name}.podferry")):
            shutil.rmtree(path, ignore_errors=True)

    def check() -> None:
        found = subprocess.run(
            ["diff", "-rq", str(source), str(target)], capture_output=True, text=True, check=False
        )
        if found.returncode:
            said = (found.stdout + found.stderr)[:500]
            raise RuntimeError(f"{name} did not download {source.name} unchanged: {said}")
        clear()

    return Command(words, environment, clear, check)


def contest(
    site: Site, name: tuple[str, str], peers: tuple[str, ...], folder: Path, least: Mapping[str, float]
) -> Contest:
    """Ours against some peers, with `cp` from the page cache.

    Args:
        site: Where the set lies.
        name: The set's prefix and its title.
        peers: Some of `EVERY`.
        folder: In memory.
        least: The ratios that are to be reached, by peer.
    """
    prefix, title = name
    return Contest(
        f"{title}; {site.title}",
        ours=fetching(site, prefix, OURS, folder),
        peers={peer: fetching(site, prefix, peer, folder) for peer in peers},
        limit=fetching(site, prefix, LIMIT, folder),
        least=least,
    )
