"""Translates the spec of Paddle Operator's SampleSet into a cache.

Source: PaddleFlow/paddle-operator, `api/v1alpha1/sampleset_types.go`, branch `sampleset`.
"""

from __future__ import annotations

import re
from typing import Any

from podferry.cache.manifests.document_table import (
    Found,
    Ignored,
    Key,
    Table,
    parse_count,
    parse_mapping,
    parse_mappings,
    read_table,
    text,
)
from podferry.contract.annotation_values import parse_secret
from podferry.contract.dataset_reference import parse_reference
from podferry.contract.errors import InvalidSpec, Problem
from podferry.contract.spec import Medium
from podferry.contract.tmpfs_cost import MIB

SAMPLE_SET = ("batch.paddlepaddle.org/v1alpha1", "SampleSet")
MEDIA = {"MEM": Medium.MEMORY, "SSD": Medium.DISK, "HDD": Medium.DISK}
HOSTS = {
    "s3": re.compile(
        r"s3://(?P<bucket>[^/]+)\.s3[.-](?P<region>[a-z0-9-]+)\.amazonaws\.com(?:\.cn)?(?P<path>/.*)?"
    ),
    "oss": re.compile(r"oss://(?P<bucket>[^/.]+)\.(?P<host>oss-[a-z0-9-]+\.aliyuncs\.com)(?P<path>/.*)?"),
}
"""URIs of `juicefs sync`, with the bucket's host; podferry reads those of `bos://` as they are."""


def _parse_levels(value: Any) -> dict[str, Any]:
    """The medium and the bytes of the levels of a cache."""
    if not isinstance(value, list) or not value or not all(isinstance(one, dict) for one in value):
        raise InvalidSpec.of("not a list of levels", repr(value), "Write mediumType and cacheSize")
    media = {MEDIA.get(one.get("mediumType")) for one in value}
    if None in media:
        raise InvalidSpec.of("unknown mediumType", repr(value), f"Write {', '.join(MEDIA)}")
    if len(media) > 1:
        remedy = "Write one level: a cache keeps its dataset in memory or on disk"
        raise InvalidSpec.of("levels in memory and on disk", repr(value), remedy)
    sizes = [one.get("cacheSize") for one in value]
    mebibytes = [parse_count(size) for size in sizes if size is not None]
    size = {"size": sum(mebibytes) * MIB} if len(mebibytes) == len(sizes) else {}
    return {"medium": media.pop(), "paths": any("path" in one for one in value), **size}


def parse_secret_ref(value: Any) -> tuple[str, str | None]:
    """The name and the namespace of a Secret."""
    if not isinstance(value, dict) or not isinstance(value.get("name"), str):
        raise InvalidSpec.of("not a reference to a Secret", repr(value), "Write {name: NAME}")
    return parse_secret(value["name"]), value.get("namespace")


SPEC: Table = {
    "partitions": Key("nodes", parse_count),
    "source": {"uri": Key("uri", text(str)), "secretRef": Key("source_secret", parse_secret_ref)},
    "secretRef": Key("secret", parse_secret_ref),
    "noSync": Ignored("holders read the source itself, and there is no volume to fill first"),
    "csi": Ignored("there is no JuiceFS volume, and no driver"),
    "cache": {"levels": Key("levels", _parse_levels)},
    "nodeAffinity": Key("node_affinity", parse_mapping),
    "tolerations": Key("tolerations", parse_mappings),
}


def add_sample_set(spec: Any, found: Found) -> None:
    """Add what the spec of a SampleSet means for a cache."""
    read_table(spec, SPEC, "spec.", found)
    values = found.values
    levels = values.pop("levels", {})
    if levels.pop("paths", False):
        found.notes.append(Problem("spec.cache.levels.path is ignored", "kubelet chooses where a volume is"))
    values.update(levels)
    _use_secret(found)
    _use_source(found)
    affinity = values.get("node_affinity", {})
    if "required" in affinity:  # as in volumes; pods have a longer name for it
        values["node_affinity"] = {"requiredDuringSchedulingIgnoredDuringExecution": affinity["required"]}


def _use_secret(found: Found) -> None:
    values = found.values
    of_source, of_all = values.pop("source_secret", None), values.pop("secret", None)
    if of_source is not None and of_all is not None:
        found.notes.append(Problem("spec.secretRef is ignored", "spec.source.secretRef has the credentials"))
    name, namespace = of_source or of_all or (None, None)
    if name is not None:
        values["secret"] = name
    if namespace not in {None, values.get("namespace")}:
        remedy = "Copy it there, or write metadata.namespace"
        what = "the Secret is not in the namespace of the holders"
        found.problems.append(Problem(what, f"{name} in {namespace}", remedy))


def _use_source(found: Found) -> None:
    uri = found.values.pop("uri", None)
    if uri is None:
        remedy = "Write where the data is, such as bos://BUCKET.REGION.bcebos.com/PATH"
        found.problems.append(Problem("spec.source.uri is missing", "", remedy))
        return
    uri, access = plain_uri(uri)
    found.values.update(access)
    try:
        found.values["source"] = parse_reference(uri)
    except InvalidSpec as error:
        found.problems += [
            Problem(f"spec.source.uri: {one.what}", one.measured, one.remedy) for one in error.problems
        ]


def plain_uri(uri: str) -> tuple[str, dict[str, str]]:
    """A URI without the bucket's host, and the region or endpoint that the host means."""
    match = next(filter(None, (pattern.fullmatch(uri) for pattern in HOSTS.values())), None)
    if match is None:
        return uri, {}
    groups = match.groupdict()
    plain = f"{uri.partition('://')[0]}://{groups['bucket']}{groups['path'] or ''}"
    region = {"region": groups["region"]} if "region" in groups else {}
    return plain, region or {"endpoint": f"https://{groups['host']}"}
