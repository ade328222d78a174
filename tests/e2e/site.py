"""`Site`: what end-to-end tests hold: a cluster with podferry installed, and an object store."""

from __future__ import annotations

import contextlib
import itertools
import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from tests.cluster.cluster import Cluster
from tests.cluster.process import ClusterError
from tests.e2e import install
from tests.e2e.bucket import CREDENTIALS, Bucket, serving
from tests.e2e.space import Space, create_namespace

RESTRICTED = {"pod-security.kubernetes.io/enforce": "restricted"}
"""Label of a namespace that enforces restricted Pod Security."""


class Site:
    """A cluster, podferry in it, a bucket.

    Attributes:
        cluster: Where podferry is installed.
        bucket: Reached by pods and by the test; see `Bucket` for its objects and commits.
        evidence: What was seen of pods when tests failed; see `namespace`.
        open: The namespaces that are there now.
    """

    def __init__(self, cluster: Cluster, bucket: Bucket) -> None:
        self.cluster = cluster
        self.bucket = bucket
        self.evidence: list[str] = []
        self.open: list[Space] = []
        self._numbers = itertools.count(1)

    @contextlib.contextmanager
    def namespace(self, labels: Mapping[str, str] | None = None) -> Iterator[Space]:
        """A fresh namespace with the store's Secret; removed at the end.

        Where the block raises, what `kubectl describe` and the logs say goes to `evidence` first.
        """
        space = Space(self.cluster, self.bucket, f"e2e-{os.getpid()}-{next(self._numbers)}")
        try:
            create_namespace(space, CREDENTIALS, labels or {})
            self.open.append(space)
            yield space
        except BaseException:
            self.gather(space)
            raise
        finally:
            if space in self.open:
                self.open.remove(space)
            self.cluster.kubectl("delete", "namespace", space.name, "--wait=false", "--ignore-not-found")

    def gather(self, space: Space) -> None:
        """Note what can be seen of a namespace's pods now."""
        try:
            self.evidence.append(space.describe())
        except ClusterError as error:  # the cluster itself may be what broke
            self.evidence.append(f"nothing can be seen of {space.name}: {error}")

    def upload_dataset(self, name: str, files: Mapping[str, bytes]) -> str:
        """Write a dataset; its URI."""
        return self.bucket.upload_dataset(name, files)

    def close(self) -> None:
        """Wait until all namespaces of this run are gone."""
        for one in self.cluster.get("namespaces")["items"]:
            name = one["metadata"]["name"]
            if name.startswith(f"e2e-{os.getpid()}-"):
                self.cluster.wait(f"namespace/{name}", "delete", timeout=90)


@contextlib.contextmanager
def site_of(cluster: Cluster, folder: Path) -> Iterator[Site]:
    """The site, for the block's time; what was there before stays.

    Args:
        cluster: Started where it does not run, and ended then.
        folder: For the bucket's objects.
    """
    before = runs(cluster)
    try:
        cluster.up()
        install.build(cluster)
        with install.installed(cluster), serving(cluster, folder) as bucket:
            site = Site(cluster, bucket)
            try:
                yield site
            finally:
                site.close()
    finally:
        if not before:
            cluster.down()


def runs(cluster: Cluster) -> bool:
    """Whether the cluster is up."""
    try:
        cluster.kubectl("get", "--raw", "/readyz")
    except (ClusterError, FileNotFoundError):
        return False
    return True
