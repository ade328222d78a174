"""`Site`: a cluster with podferry installed, and an object store."""

from __future__ import annotations

import contextlib
import itertools
import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from tests.cluster.cluster import Cluster
from tests.cluster.files import say
from tests.cluster.process import ClusterError
from tests.e2e import install
from tests.e2e.bucket import CREDENTIALS, Bucket, serving
from tests.e2e.namespace import Namespace, create_namespace

RESTRICTED = {"pod-security.kubernetes.io/enforce": "restricted"}
"""Label of a namespace that enforces restricted Pod Security."""


class Site:
    """A cluster, podferry in it, a bucket.

    Attributes:
        cluster: Where podferry is installed.
        bucket: Reached by pods and by the test; see `Bucket` for its objects and commits.
        evidence: Descriptions of pods from when tests failed; see `namespace`.
        namespaces: The existing namespaces of tests.
    """

    def __init__(self, cluster: Cluster, bucket: Bucket) -> None:
        self.cluster = cluster
        self.bucket = bucket
        self.evidence: list[str] = []
        self.namespaces: list[Namespace] = []
        self._numbers = itertools.count(1)

    @contextlib.contextmanager
    def namespace(self, labels: Mapping[str, str] | None = None) -> Iterator[Namespace]:
        """A fresh namespace with the store's Secret; removed at the end."""
        with self.namespace_to_create() as namespace:
            create_namespace(namespace, CREDENTIALS, labels or {})
            yield namespace

    @contextlib.contextmanager
    def namespace_to_create(self) -> Iterator[Namespace]:
        """A namespace that the block creates; removed at the end.

        If the block raises, the output of `kubectl describe` and the logs go to `evidence` first.
        """
        namespace = Namespace(self.cluster, self.bucket, f"e2e-{os.getpid()}-{next(self._numbers)}")
        self.namespaces.append(namespace)
        try:
            yield namespace
        except BaseException:
            self.gather(namespace)
            raise
        finally:
            if namespace in self.namespaces:
                self.namespaces.remove(namespace)
            self.cluster.kubectl("delete", "namespace", namespace.name, "--wait=false", "--ignore-not-found")

    def gather(self, namespace: Namespace) -> None:
        """Add the current description of a namespace's pods to `evidence`."""
        try:
            self.evidence.append(namespace.describe())
        except ClusterError as error:  # the cluster itself may be what broke
            self.evidence.append(f"cannot describe {namespace.name}: {error}")

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
    """The site for the duration of the block; what existed before stays.

    Args:
        cluster: Started if it does not run, and then stopped at the end.
        folder: For the bucket's objects.
    """
    before = runs(cluster)
    try:
        cluster.up()
        install.build(cluster)
        say("installing podferry in the cluster")
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
