"""What fetching during a slow listing saves: a frozen reference, whose size is known, against a URI."""

from __future__ import annotations

import os
import subprocess
from dataclasses import replace
from pathlib import Path

from datasets import Data
from harness import LIMIT, OURS, Contest, Result, compare
from peers import OURS_PROGRAM, fetching
from serving import BUCKET, Site


def listed(data: Data, pairs: int, site: Site, folder: Path) -> list[Result]:
    """The comparison; without a size nothing is fetched before all is listed."""
    uri = f"s3://{BUCKET}/{data.name}"
    frozen = subprocess.run(
        [OURS_PROGRAM, "dataset", "freeze", "--endpoint", site.endpoint, uri],
        env={**os.environ, **site.environment},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    ).stdout.strip()
    unsized = fetching(site, data.name, OURS, folder)
    contest = Contest(
        f"{data.title}, frozen; {site.title}",
        ours=replace(unsized, words=[frozen if word == uri else word for word in unsized.words]),
        peers={"of unknown size": unsized},
        limit=fetching(site, data.name, LIMIT, folder),
        least={},
    )
    return compare(contest, pairs, warm_up=pairs > 1)
