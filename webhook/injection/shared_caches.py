"""Pods read a dataset where a cache's holders keep it, through a claim of their namespace. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec

from podferry.contract.cache_api import CACHE_LABEL
from podferry.contract.claims import SCHEME
from podferry.contract.dataset_reference import parse_reference
from podferry.contract.shared_stage import FILES_DIR
from podferry.contract.spec import FILE_MODE, DatasetMode, DatasetSpec, FerrySpec, MountedDataset, Unpack
from podferry.webhook.injection.caches import HOSTNAME
from podferry.webhook.injection.volumes import shared_dir
from podferry.webhook.pod.json_patch import Draft, find
from podferry.webhook.pod.known_cache import KnownCache

WITH_HOLDER = ("spec", "affinity", "podAffinity", "requiredDuringSchedulingIgnoredDuringExecution")


def share(spec: FerrySpec, caches: Mapping[str, KnownCache]) -> FerrySpec:
    """A spec whose datasets are mounted instead of staged where a cache shares all of their files.

    Of several caches the first one shares, and the others' datasets are copied: the scheduler takes a node
    for a pod that requires holders of two only if one pod is both.

    Args:
        spec: Of a pod.
        caches: The cache of each dataset that has one, by the dataset's name.
    """
    shared = {one.name: caches[one.name] for one in spec.datasets if _is_shared(one, caches.get(one.name))}
    if not shared:
        return spec
    first = next(iter(shared.values()))
    shared = {name: cache for name, cache in shared.items() if cache == first}
    mounted = (
        MountedDataset(
            f"{SCHEME}://{shared[one.name].claim}/{FILES_DIR}",
            DatasetMode.SHARE,
            one.path,
            one.name,
            one.reference,
        )
        for one in spec.datasets
        if one.name in shared
    )
    staged = tuple(one for one in spec.datasets if one.name not in shared)
    return msgspec.structs.replace(spec, datasets=staged, mounted=(*spec.mounted, *mounted))


def _is_shared(dataset: DatasetSpec, cache: KnownCache | None) -> bool:
    """Whether the files in the holder's stage are just those that a copy would have."""
    if cache is None or not cache.claim:
        return False
    held, wanted = parse_reference(cache.source).digest, dataset.parsed.digest
    selects = dataset.include or dataset.exclude or dataset.shard
    as_it_is = dataset.unpack is not Unpack.ALWAYS and dataset.file_mode == FILE_MODE
    return as_it_is and not selects and wanted in {None, held}


def shared_flags(spec: FerrySpec) -> Iterator[str]:
    """Arguments of the agent."""
    for one in spec.shared:
        yield f"--shared-dir={f'{one.name}=' if one.name else ''}{shared_dir(one)}"


def require_nodes(draft: Draft, spec: FerrySpec, caches: Mapping[str, KnownCache]) -> None:
    """Have the scheduler take a node with a holder: on others, there is nothing to mount."""
    for cache in dict.fromkeys(caches[one.name] for one in spec.shared):
        term = {
            "labelSelector": {"matchLabels": {CACHE_LABEL: cache.name}},
            "namespaces": [cache.namespace],
            "topologyKey": HOSTNAME,
        }
        if term not in (find(draft.document, WITH_HOLDER) or ()):
            draft.append(WITH_HOLDER, term)
