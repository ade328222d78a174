"""An injected pod trains from each kind of source and commits there; podferry reads the commit back."""

from __future__ import annotations

import contextlib
import hashlib
import json
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from tests.cluster.cluster import Cluster
from tests.cluster.process import run
from tests.e2e.bucket import free_port
from tests.e2e.hadoop import hdfs, webhdfs
from tests.e2e.login_sources import LOGIN_SOURCES
from tests.e2e.manifests import container, job, podferry_annotations
from tests.e2e.namespace import STORE_SECRET, create_namespace
from tests.e2e.object_stores import OBJECT_STORES
from tests.e2e.shares import smb
from tests.e2e.site import Site
from tests.e2e.source import Source
from tests.e2e.web_sources import WEB_SOURCES

FILES = {
    f"part {number}/{number}#.bin": hashlib.shake_256(bytes(number)).digest(700_000) for number in range(5)
}
DIGESTS = {name: hashlib.sha256(data).hexdigest() for name, data in FILES.items()}
WEIGHTS = b'{"weights": "first"}'
TRAIN = f"""
import hashlib, os, pathlib
data, checkpoints = (pathlib.Path(os.environ[f"PODFERRY_{{name}}"]) for name in ("DATASET", "CHECKPOINTS"))
found = {{str(file.relative_to(data)): hashlib.sha256(file.read_bytes()).hexdigest()
          for file in data.rglob("*") if file.is_file()}}
assert found == {DIGESTS!r}, found
(checkpoints / "last.tmp").mkdir()
(checkpoints / "last.tmp/weights.json").write_bytes({WEIGHTS!r})
(checkpoints / "last.tmp").rename(checkpoints / "last")  # else it is doubtful whether more files follow
"""


@contextlib.contextmanager
def oss(cluster: Cluster, files: Path) -> Iterator[Source]:
    """An imitation of OSS, with a Secret as Alibaba's CSI driver reads it."""
    host, port = cluster.host_address, free_port(cluster)
    command = [sys.executable, "-m", "tests.support.oss.server", host, str(port), str(files)]
    secret = {"akId": "key-of-tests", "akSecret": "secret-of-tests", "OSS_REGION": "cn-hangzhou"}
    endpoint = {"endpoint": f"http://{host}:{port}"}
    with cluster.run_in_network(command, port=port):
        yield Source("oss://bucket/set", "oss://bucket/checkpoints", secret, endpoint)


SOURCES: dict[str, Callable[[Cluster, Path], AbstractContextManager[Source]]] = {
    "oss": oss,
    "smb": smb,
    "hdfs": hdfs,
    "webhdfs": webhdfs,
    **LOGIN_SOURCES,
    **OBJECT_STORES,
    **WEB_SOURCES,
}
"""By scheme: starts a server of the files in a folder, in the network of pods."""


@pytest.mark.parametrize("scheme", SOURCES)
def test_a_pod_trains_from_a_source_and_commits_to_it(site: Site, tmp_path: Path, scheme: str) -> None:
    for name, data in FILES.items():
        path = tmp_path / "set" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    with SOURCES[scheme](site.cluster, tmp_path) as source, site.namespace_to_create() as namespace:
        create_namespace(namespace, source.secret, {})
        annotations = podferry_annotations(
            secret=STORE_SECRET,
            dataset=source.dataset,
            dataset_size="32Mi",
            checkpoints=source.checkpoints,
            checkpoint_size="8Mi",
            **source.annotations,
        )
        outcome = namespace.run(job("digits", container(script=TRAIN), annotations=annotations), 120)
        assert outcome.succeeded, outcome
        options = [word for name, value in source.annotations.items() for word in (f"--{name}", value)]
        words = ["checkpoints", "verify", source.checkpoints, namespace.lineage("digits"), *options]
        command = [sys.executable, "-m", "podferry.cli.main", *words, "-o", "json"]
        variables = source.environment or source.secret
        found = json.loads(run([*site.cluster.backend.inside, *command], environment=variables))
        assert [one["state"] for one in found] == ["intact"]
