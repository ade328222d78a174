"""Reads a file that describes a cache: podferry's own kind, or Paddle Operator's SampleSet.

    apiVersion: podferry.io/v1alpha1
    kind: Cache
    metadata: {name: digits, namespace: podferry}
    spec:
      source: s3://datasets/digits
      size: 14Gi

Both are read here alone: a cluster needs no definition of either kind.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from podferry.cache.manifests.cache_spec import (
    parse_cache_name,
    parse_image,
    parse_node_directory,
    parse_rate,
    parse_readers,
)
from podferry.cache.manifests.document_table import (
    Found,
    Key,
    Table,
    parse_count,
    parse_labels,
    parse_mapping,
    parse_mappings,
    parse_strings,
    read_table,
    text,
)
from podferry.cache.manifests.sample_set import SAMPLE_SET, add_sample_set
from podferry.contract.annotation_values import (
    parse_endpoint,
    parse_namespace,
    parse_region,
    parse_secret,
    parse_size,
)
from podferry.contract.dataset_reference import parse_reference
from podferry.contract.errors import InvalidSpec, Problem
from podferry.contract.quantity import parse_seconds
from podferry.contract.spec import Medium

CACHE = ("podferry.io/v1alpha1", "Cache")
MEDIA = (Medium.MEMORY, Medium.DISK)


def _parse_medium(word: str) -> Medium:
    if word not in MEDIA:
        raise InvalidSpec.of("unknown medium", repr(word), f"Write {' or '.join(MEDIA)}")
    return Medium(word)


def _parse_readers(value: Any) -> tuple[str, ...]:
    return tuple(map(parse_readers, parse_strings(value)))


METADATA: Table = {
    "name": Key("name", text(parse_cache_name)),
    "namespace": Key("namespace", text(parse_namespace)),
}
SPEC: Table = {
    "source": Key("source", text(parse_reference)),
    "size": Key("size", text(parse_size)),
    "nodes": Key("nodes", parse_count),
    "selector": Key("selector", parse_labels),
    "nodeAffinity": Key("node_affinity", parse_mapping),
    "tolerations": Key("tolerations", parse_mappings),
    "readers": Key("readers", _parse_readers),
    "medium": Key("medium", text(_parse_medium)),
    "shared": Key("shared", text(parse_node_directory)),
    "maxRate": Key("max_rate", text(parse_rate)),
    "refresh": Key("refresh", text(parse_seconds)),
    "image": Key("image", text(parse_image)),
    "secret": Key("secret", text(parse_secret)),
    "endpoint": Key("endpoint", text(parse_endpoint)),
    "region": Key("region", text(parse_region)),
}


class CacheFile(NamedTuple):
    """What a file says.

    Attributes:
        values: By the names of `CacheSpec`'s fields, and `secret`, `endpoint` and `region` of its access;
            what the file does not say is not there.
        notes: Keys that change nothing, and why.
    """

    values: dict[str, Any]
    notes: tuple[Problem, ...]


def read_cache_file(document: Any, source: str) -> CacheFile:
    """Read a document.

    Args:
        document: As YAML has read it.
        source: Its name, for messages.

    Raises:
        InvalidSpec: Everything that is wrong with it.
    """
    kind = (document.get("apiVersion"), document.get("kind")) if isinstance(document, dict) else ()
    if kind not in (CACHE, SAMPLE_SET):
        known = " or ".join(f"{name} of {version}" for version, name in (CACHE, SAMPLE_SET))
        measured = " of ".join(str(word) for word in reversed(kind))
        raise InvalidSpec.of(f"{source} does not describe a cache", measured, f"Write a {known}")
    found = Found()
    metadata = document.get("metadata") or {}
    if isinstance(metadata, dict):  # of its many keys, two count
        metadata = {key: metadata[key] for key in METADATA if key in metadata}
    read_table(metadata, METADATA, "metadata.", found)
    spec = document.get("spec") or {}
    if kind == CACHE:
        read_table(spec, SPEC, "spec.", found)
    else:
        add_sample_set(spec, found)
    InvalidSpec.raise_any(
        Problem(f"{source}: {one.what}", one.measured, one.remedy) for one in found.problems
    )
    return CacheFile(found.values, tuple(found.notes))
