"""Whether datasets fit, all of them together: each limit with its numbers, before a byte moves. Pure.

Volumes that lie on one file system share its room, and all datasets in memory share the memory limit and the
machine's memory. They are brought one after another, so bytes in flight count once: the most of any.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from podferry.contract.dataset_volume import DatasetVolume
from podferry.contract.errors import Problem, Refused
from podferry.contract.manifest import Entry
from podferry.contract.quantity import format_bytes, quantity_at_least
from podferry.contract.spec import PREFIX
from podferry.contract.tmpfs_cost import allocated_bytes, charged_bytes
from podferry.sidecar.fetch.plan import FetchPlan
from podferry.sidecar.staging.volume_capacity import Capacity

PACK = "podferry dataset pack"
WASTE = 1.25
"""Times their bytes that files take in memory, from which on packing them is worth telling."""


class PlannedDataset(msgspec.Struct, frozen=True):
    """A plan, and where it is to be carried out.

    Attributes:
        plan: What is to be written.
        capacity: What the place has room for now.
        name: That of `dataset.NAME`; empty for the dataset that has none.
        limit: Bytes of the volume that only the kubelet counts, which evicts the pod: an emptyDir on disk.
            None where the file system itself is as large as the volume.
    """

    plan: FetchPlan
    capacity: Capacity
    name: str = ""
    limit: int | None = None

    @property
    def called(self) -> str:
        """What a message calls it."""
        return f"the dataset {self.name}" if self.name else "the dataset"


def refuse_unless_fits(placed: Sequence[PlannedDataset], *, in_pod: bool) -> None:
    """Raise what `fit_problems` finds.

    Raises:
        Refused: They do not fit; no byte has moved, but for what came beside a listing and is removed.
    """
    Refused.raise_any(fit_problems(placed, in_pod=in_pod))


def fit_problems(placed: Sequence[PlannedDataset], *, in_pod: bool) -> list[Problem]:
    """Why the datasets do not fit, each limit with its numbers; empty where they do.

    Args:
        placed: All that one agent is to bring.
        in_pod: Remedies name annotations rather than options of the command line.
    """
    found: list[Problem] = []
    for group in _volumes(placed):
        found += [*_volume_problems(group, in_pod), *_inode_problems(group, in_pod)]
    found += [problem for one in placed for problem in _limit_problems(one)]
    in_memory = [one for one in placed if one.capacity.in_memory]
    return [*found, *(_memory_problems(in_memory, in_pod) if in_memory else ())]


def surely_fits(volume: DatasetVolume, capacity: Capacity, flight: int) -> bool:
    """Whether there is room for all that a dataset's volume may hold, whatever its listing will say.

    Args:
        volume: As large as its wishes say.
        capacity: What the place has room for.
        flight: Bytes in flight.
    """
    limits = (capacity.memory_bytes, capacity.node_bytes)
    memory = volume.bytes + volume.files + 2 * flight  # twice, as in `_memory_problems`
    return volume.bytes <= capacity.volume_bytes and all(one is None or memory <= one for one in limits)


def _volumes(placed: Sequence[PlannedDataset]) -> list[list[PlannedDataset]]:
    """Those that share a file system together; a device that is not known is its own."""
    groups: dict[object, list[PlannedDataset]] = {}
    for one in placed:
        device = one.capacity.device
        groups.setdefault(id(one) if device is None else ("device", device), []).append(one)
    return list(groups.values())


def _volume_problems(group: Sequence[PlannedDataset], in_pod: bool) -> Iterator[Problem]:
    need = sum(_in_pages(one.plan.files, one) - one.plan.partial for one in group)
    free = min(one.capacity.volume_bytes for one in group)
    if need > free:
        measured = f"{_files(group)} need {format_bytes(need)} in whole pages; {format_bytes(free)} are free"
        whose = "its" if len(group) == 1 else "their"
        yield Problem(f"{_larger(group)} than {whose} volume", measured, _room(group, in_pod))


def _inode_problems(group: Sequence[PlannedDataset], in_pod: bool) -> Iterator[Problem]:
    files = sum(len(one.plan.files) for one in group)
    folders = sum(len(_directories(one.plan.files) - _directories(one.plan.kept)) for one in group)
    known = [one.capacity.volume_files for one in group if one.capacity.volume_files is not None]
    if known and files + folders > min(known):
        measured = f"{files:,} files in {folders:,} directories; {min(known):,} inodes are free"
        remedy = f"Pack the small files with `{PACK}`, or bring a part of them with {_part(in_pod)}"
        yield Problem("the volume has too few inodes", measured, remedy)


def _limit_problems(one: PlannedDataset) -> Iterator[Problem]:
    need = _in_pages((*one.plan.files, *one.plan.kept), one)
    if one.limit is not None and need > one.limit:
        measured = f"it takes {format_bytes(need)} in whole blocks; the volume's sizeLimit is "
        what = f"{one.called} is larger than its volume: the kubelet would evict the pod"
        yield Problem(what, measured + format_bytes(one.limit), _room([one], in_pod=True))


def _memory_problems(group: Sequence[PlannedDataset], in_pod: bool) -> Iterator[Problem]:
    sizes = (sum(entry.size for entry in one.plan.files) for one in group)
    # Twice: a body in chunks, and joined.
    flight = 2 * max(min(one.plan.buffer_bytes, size) for one, size in zip(group, sizes, strict=True))
    need = sum(_charged(one.plan.files, one) - one.plan.partial for one in group) + flight
    beside = f"with pages, inodes and {format_bytes(flight)} in flight"
    wanted = f"{_files(group)} need {format_bytes(need)} {beside}"
    limit = _least(one.capacity.memory_bytes for one in group)
    if limit is not None and need > limit:
        measured = f"{wanted}; the limit leaves {format_bytes(limit)}"
        raised = f"Raise the memory limit of this process's cgroup; {_less(group, in_pod)}"
        remedy = _room(group, in_pod) if in_pod else raised
        yield Problem(f"{_larger(group)} than the memory limit", measured, remedy)
    left = _least(one.capacity.node_bytes for one in group)
    if left is not None and need > left:
        what = f"{_larger(group)} than the memory that this machine has left"
        remedy = f"Use a {'node' if in_pod else 'machine'} with more memory; {_less(group, in_pod)}"
        yield Problem(what, f"{wanted}; {format_bytes(left)} are available", remedy)


def _larger(group: Sequence[PlannedDataset]) -> str:
    return f"{group[0].called} is larger" if len(group) == 1 else "the datasets together are larger"


def _files(group: Sequence[PlannedDataset]) -> str:
    """How many files of how many bytes, of each where there are several."""
    shown = []
    for one in group:
        count, size = len(one.plan.files), sum(entry.size for entry in one.plan.files)
        text = f"{count:,} file{'s' * (count != 1)} of {format_bytes(size)}"
        shown.append(f"{one.name or 'the unnamed'}: {text}" if len(group) > 1 else text)
    return ", ".join(shown)


def _room(group: Sequence[PlannedDataset], in_pod: bool) -> str:
    """A larger volume or another path holds the whole dataset, what is kept included."""
    whole = {one.name: _charged((*one.plan.files, *one.plan.kept), one) for one in group}
    if not in_pod:
        free = f"a place with {format_bytes(sum(whole.values()))} free"
        return f"Give {_names(group, '--dataset-path')} {free}; {_less(group, in_pod)}"
    sizes = [
        f"{PREFIX}{_key('dataset-size', name)} to {quantity_at_least(need + need // 20)}"
        for name, need in whole.items()
    ]
    return f"Set {' and '.join(sizes)}; {_less(group, in_pod)}"


def _less(group: Sequence[PlannedDataset], in_pod: bool) -> str:
    """What takes less memory: a disk, a part, or fewer and larger files."""
    disk = any(one.capacity.in_memory for one in group)
    choices = [f"set {_names(group, PREFIX + 'medium')} to disk or auto"] if in_pod and disk else []
    choices.append(f"bring a part with {_part(in_pod)}")
    if any(_wasteful(one) for one in group):
        choices.append(f"pack the small files with `{PACK}`")
    return "or " + ", or ".join(choices)


def _part(in_pod: bool) -> str:
    return f"{PREFIX}shard or {PREFIX}include" if in_pod else "--shard or --include"


def _names(group: Sequence[PlannedDataset], key: str) -> str:
    return " and ".join(_key(key, one.name) for one in group)


def _key(key: str, name: str) -> str:
    return f"{key}.{name}" if name else key


def _wasteful(one: PlannedDataset) -> bool:
    return _charged(one.plan.files, one) > WASTE * sum(entry.size for entry in one.plan.files)


def _in_pages(entries: Iterable[Entry], one: PlannedDataset) -> int:
    """What files take of their volume."""
    return allocated_bytes((entry.size for entry in entries), one.capacity.page_bytes)


def _charged(entries: Iterable[Entry], one: PlannedDataset) -> int:
    """What files are charged to a memory limit."""
    return charged_bytes((entry.size for entry in entries), one.capacity.page_bytes)


def _directories(entries: Iterable[Entry]) -> set[str]:
    """All directories that files lie in, those above included."""
    found: set[str] = set()
    for entry in entries:
        parent = entry.name.rpartition("/")[0]
        while parent and parent not in found:
            found.add(parent)
            parent = parent.rpartition("/")[0]
    return found


def _least(figures: Iterable[int | None]) -> int | None:
    return min((figure for figure in figures if figure is not None), default=None)
