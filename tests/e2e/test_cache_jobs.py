"""Verbs of a cache run as Jobs, with the rights that their manifests give, under restricted Pod Security."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from tests.e2e.install import IMAGE
from tests.e2e.namespace import STORE_SECRET, Namespace
from tests.e2e.site import RESTRICTED, Site
from tests.e2e.test_cache import FILES, bindings, create

__all__ = ["bindings"]
WORKERS = 3
MOVED = re.compile(r"(\d+) files? moved")


@pytest.fixture
def restricted(site: Site):
    """A namespace that enforces restricted Pod Security."""
    with site.namespace(RESTRICTED) as namespace:
        yield namespace


def run_verb(namespace: Namespace, verb: str, *words: str, options: tuple[str, ...] = ()) -> str:
    """Run a verb as a Job to its end; what its pods have printed."""
    command = (*("cache", "job", "--image", IMAGE), *options, verb, "digits", *words, "-n", namespace.name)
    rendered = subprocess.run(
        [sys.executable, "-m", "podferry", *command], check=True, capture_output=True, text=True
    )
    namespace.cluster.kubectl("apply", "-f", "-", stdin=rendered.stdout)
    name = f"podferry-job-digits-{verb}"
    namespace.cluster.wait(f"job/{name}", "condition=Complete", namespace=namespace.name, timeout=120)
    return namespace.kubectl("logs", f"-ljob-name={name}", "--tail=-1")


def test_a_cache_is_warmed_up_synced_cleaned_and_cleared_by_jobs(site: Site, restricted: Namespace) -> None:
    namespace, prefix = restricted, f"cache-{restricted.name}"
    source = site.upload_dataset(prefix, FILES)
    create(namespace, source, "--size", "32Mi")
    assert run_verb(namespace, "warmup", "--timeout", "90") == "digits: 1 holder with 3.8 MiB each\n"

    changed = {**FILES, **dict.fromkeys(list(FILES)[::4], b"changed"), "d0/new.bin": b"new"}
    newer = site.upload_dataset(f"{prefix}-newer", changed)
    endpoint = f"--endpoint={namespace.bucket.endpoint}"
    options = ("--secret", STORE_SECRET)
    said = run_verb(namespace, "sync", newer, endpoint, options=(*options, "--workers", str(WORKERS)))
    counts = [int(count) for count in MOVED.findall(said)]
    assert len(counts) == WORKERS
    assert sum(counts) == sum(data != FILES.get(name) for name, data in changed.items())
    assert {name: site.bucket.read(f"datasets/{prefix}/{name}") for name in changed} == changed

    said = run_verb(namespace, "rmr", "d0", "d1/1.bin", endpoint, "--yes", options=options)
    assert "removed: " in said
    left = site.bucket.objects(f"datasets/{prefix}/")
    assert len(left) > len(FILES) / 2
    assert not [name for name in left if "/d0/" in name or name.endswith("d1/1.bin")]
    assert "is replaced" in run_verb(namespace, "clear")
