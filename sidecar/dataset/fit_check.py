"""Checks whether all datasets fit together, before any byte is transferred. Pure.

Volumes on one file system share its space, and all datasets in memory share the memory limit and the
machine's memory. Datasets are fetched one after the other, so only the largest number of bytes in flight
counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from podferry.contract.dataset_volume import DatasetVolume
from podferry.contract.errors import Problem
from podferry.contract.manifest import Entry
from podferry.contract.quantity import format_bytes, quantity_at_least
from podferry.contract.spec import PREFIX
from podferry.contract.tmpfs_cost import allocated_bytes, charged_bytes
from podferry.sidecar.fetch.plan import FetchPlan
from podferry.sidecar.staging.volume_capacity import Capacity

PACK_COMMAND = "podferry dataset pack"
WASTEFUL_RATIO = 1.25
"""Charged memory / bytes, from which a remedy suggests to pack the files."""


class ArgumentNames(msgspec.Struct, frozen=True):
    """What a command calls its arguments, in remedies outside of pods.

    Attributes:
        directory: Where the dataset is to be.
        part: What selects a part of it; empty for a command that takes the whole dataset.
    """

    directory: str = "--dataset-path"
    part: str = "--shard or --include"


RUN = ArgumentNames()
HOLDER = ArgumentNames("DIRECTORY", part="")
"""Of `podferry cache serve`."""


class SizedPlan(msgspec.Struct, frozen=True):
    """A plan, and the space for it.

    Attributes:
        plan: What is to be fetched.
        capacity: The free space in its place now.
        name: That of `dataset.NAME`; empty for the unnamed dataset.
        size_limit: Bytes of a volume whose size only the kubelet enforces, by evicting the pod: an emptyDir
            on disk. None if the file system itself has the volume's size.
        size_option: What has set the limit, if that is no annotation of a pod.
        other_bytes: What the place has next to this dataset, such as other versions of it, in whole blocks.
        names: Of the command's arguments.
    """

    plan: FetchPlan
    capacity: Capacity
    name: str = ""
    size_limit: int | None = None
    size_option: str = ""
    other_bytes: int = 0
    names: ArgumentNames = RUN

    def with_room(self, freed: int) -> SizedPlan:
        """The same where so many bytes of what is next to it are removed."""
        capacity = self.capacity
        limits = (capacity.memory_bytes, capacity.node_bytes)
        memory, node = (None if one is None else one + freed for one in limits)
        volume = capacity.volume_bytes + freed
        more = msgspec.structs.replace(capacity, volume_bytes=volume, memory_bytes=memory, node_bytes=node)
        others = max(self.other_bytes - freed, 0)
        return msgspec.structs.replace(self, capacity=more, other_bytes=others)

    @property
    def label(self) -> str:
        """Its name in messages."""
        return f"the dataset {self.name}" if self.name else "the dataset"


def fit_problems(plans: Sequence[SizedPlan], *, in_pod: bool) -> list[Problem]:
    """Why the datasets of one agent do not fit: each exceeded limit with its numbers.

    Remedies name annotations if `in_pod`, otherwise command-line options.
    """
    problems: list[Problem] = []
    for group in _by_file_system(plans):
        problems += [*_volume_problems(group, in_pod), *_inode_problems(group, in_pod)]
    problems += [problem for one in plans for problem in _size_limit_problems(one)]
    in_memory = [one for one in plans if one.capacity.in_memory]
    return [*problems, *(_memory_problems(in_memory, in_pod) if in_memory else ())]


def surely_fits(volume: DatasetVolume, capacity: Capacity, buffer_bytes: int) -> bool:
    """Whether any dataset of up to the volume's requested size fits, with `buffer_bytes` in flight."""
    limits = (capacity.memory_bytes, capacity.node_bytes)
    memory = volume.bytes + volume.files + 2 * buffer_bytes  # twice, as in `_memory_problems`
    return volume.bytes <= capacity.volume_bytes and all(one is None or memory <= one for one in limits)


def _by_file_system(plans: Sequence[SizedPlan]) -> list[list[SizedPlan]]:
    """Plans grouped by device; one whose device is unknown is a group of its own."""
    groups: dict[object, list[SizedPlan]] = {}
    for one in plans:
        device = one.capacity.device
        groups.setdefault(id(one) if device is None else ("device", device), []).append(one)
    return list(groups.values())


def _volume_problems(group: Sequence[SizedPlan], in_pod: bool) -> Iterator[Problem]:
    needed = sum(_allocated(one.plan.files, one) - one.plan.partial_bytes for one in group)
    free = min(one.capacity.volume_bytes for one in group)
    if needed > free:
        measured = (
            f"{_files(group)} need {format_bytes(needed)} in whole pages; {format_bytes(free)} are free"
        )
        whose = "its" if len(group) == 1 else "their"
        yield Problem(f"{_too_large(group)} than {whose} volume", measured, _more_space(group, in_pod))


def _inode_problems(group: Sequence[SizedPlan], in_pod: bool) -> Iterator[Problem]:
    files = sum(len(one.plan.files) for one in group)
    directories = sum(len(_directories(one.plan.files) - _directories(one.plan.kept)) for one in group)
    free = _minimum(one.capacity.volume_files for one in group)
    if free is not None and files + directories > free:
        measured = f"{files:,} files in {directories:,} directories; {free:,} inodes are free"
        part = _part(group, in_pod)
        remedy = f"Pack the small files with `{PACK_COMMAND}`" + (
            f", or stage a part of them with {part}" if part else ""
        )
        yield Problem("the volume has too few inodes", measured, remedy)


def _size_limit_problems(one: SizedPlan) -> Iterator[Problem]:
    needed = _allocated((*one.plan.files, *one.plan.kept), one)
    if one.size_limit is None or needed + one.other_bytes <= one.size_limit:
        return
    takes, limit = f"it takes {format_bytes(needed)} in whole blocks", format_bytes(one.size_limit)
    if one.other_bytes:
        takes += f", next to {format_bytes(one.other_bytes)} of other versions"
    if one.size_option:
        what = f"{one.label} is larger than its space"
        yield Problem(what, f"{takes}; {one.size_option} is {limit}", _more_space([one], in_pod=False))
    else:
        what = f"{one.label} is larger than its volume: the kubelet would evict the pod"
        measured = f"{takes}; the volume's sizeLimit is {limit}"
        yield Problem(what, measured, _more_space([one], in_pod=True))


def _memory_problems(group: Sequence[SizedPlan], in_pod: bool) -> Iterator[Problem]:
    sizes = (sum(entry.size for entry in one.plan.files) for one in group)
    # Twice: a body in chunks, and joined.
    in_flight = 2 * max(min(one.plan.buffer_bytes, size) for one, size in zip(group, sizes, strict=True))
    needed = sum(_charged(one.plan.files, one) - one.plan.partial_bytes for one in group) + in_flight
    overhead = f"with pages, inodes and {format_bytes(in_flight)} in flight"
    demand = f"{_files(group)} need {format_bytes(needed)} {overhead}"
    limit = _minimum(one.capacity.memory_bytes for one in group)
    if limit is not None and needed > limit:
        measured = f"{demand}; the limit leaves {format_bytes(limit)}"
        raise_limit = f"Raise the memory limit of this process's cgroup{_alternatives(group, in_pod)}"
        remedy = _more_space(group, in_pod) if in_pod else raise_limit
        yield Problem(f"{_too_large(group)} than the memory limit", measured, remedy)
    available = _minimum(one.capacity.node_bytes for one in group)
    if available is not None and needed > available:
        what = f"{_too_large(group)} than the memory that this machine has left"
        remedy = f"Use a {'node' if in_pod else 'machine'} with more memory{_alternatives(group, in_pod)}"
        yield Problem(what, f"{demand}; {format_bytes(available)} are available", remedy)


def _too_large(group: Sequence[SizedPlan]) -> str:
    return f"{group[0].label} is larger" if len(group) == 1 else "the datasets together are larger"


def _files(group: Sequence[SizedPlan]) -> str:
    """Number and size of the files; per dataset if there are several."""
    texts = []
    for one in group:
        count, size = len(one.plan.files), sum(entry.size for entry in one.plan.files)
        text = f"{count:,} file{'s' * (count != 1)} of {format_bytes(size)}"
        texts.append(f"{one.name or 'the unnamed'}: {text}" if len(group) > 1 else text)
    return ", ".join(texts)


def _more_space(group: Sequence[SizedPlan], in_pod: bool) -> str:
    """A remedy: a larger volume or another path, for the entire dataset with what is kept."""
    totals = {one.name: _charged((*one.plan.files, *one.plan.kept), one) for one in group}
    total, limit = sum(totals.values()) + sum(one.other_bytes for one in group), group[0].size_limit
    if group[0].size_option and limit is not None and total > limit:
        return f"Give {group[0].size_option} {quantity_at_least(total + total // 20)}"
    if not in_pod:
        place = f"a place with {format_bytes(total)} free"
        return f"Give {_keys(group, group[0].names.directory)} {place}{_alternatives(group, in_pod)}"
    sizes = [
        f"{PREFIX}{_key('dataset-size', name)} to {quantity_at_least(total + total // 20)}"
        for name, total in totals.items()
    ]
    return f"Set {' and '.join(sizes)}{_alternatives(group, in_pod)}"


def _alternatives(group: Sequence[SizedPlan], in_pod: bool) -> str:
    """The end of a remedy: what takes less memory: a disk, a subset, or fewer and larger files."""
    in_memory = any(one.capacity.in_memory for one in group)
    choices = [f"set {_keys(group, PREFIX + 'medium')} to disk or auto"] if in_pod and in_memory else []
    if part := _part(group, in_pod):
        choices.append(f"stage a part with {part}")
    sizes = {one.name: sum(entry.size for entry in one.plan.files) for one in group}
    if any(_charged(one.plan.files, one) > WASTEFUL_RATIO * sizes[one.name] for one in group):
        choices.append(f"pack the small files with `{PACK_COMMAND}`")
    return "; or " * bool(choices) + ", or ".join(choices)


def _part(group: Sequence[SizedPlan], in_pod: bool) -> str:
    return f"{PREFIX}shard or {PREFIX}include" if in_pod else group[0].names.part


def _keys(group: Sequence[SizedPlan], key: str) -> str:
    return " and ".join(_key(key, one.name) for one in group)


def _key(key: str, name: str) -> str:
    return f"{key}.{name}" if name else key


def _allocated(entries: Iterable[Entry], one: SizedPlan) -> int:
    """Bytes that files take from their volume."""
    return allocated_bytes((entry.size for entry in entries), one.capacity.page_bytes)


def _charged(entries: Iterable[Entry], one: SizedPlan) -> int:
    """Bytes that files are charged to a memory limit."""
    return charged_bytes((entry.size for entry in entries), one.capacity.page_bytes)


def _directories(entries: Iterable[Entry]) -> set[str]:
    """All directories of files, including parents."""
    found: set[str] = set()
    for entry in entries:
        parent = entry.name.rpartition("/")[0]
        while parent and parent not in found:
            found.add(parent)
            parent = parent.rpartition("/")[0]
    return found


def _minimum(values: Iterable[int | None]) -> int | None:
    return min((value for value in values if value is not None), default=None)
