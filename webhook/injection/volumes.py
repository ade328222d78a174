"""Builds volumes and mounts: one volume per purpose, so that none can use another's space or files."""

from __future__ import annotations

from collections.abc import Iterator, Set
from typing import Any

from podferry.contract.claims import CLAIMS_DIR, claims_of
from podferry.contract.errors import Problem
from podferry.contract.memory_sum import MemorySum
from podferry.contract.mounted_dataset import image_of
from podferry.contract.pod_locations import directories_of
from podferry.contract.quantity import exact_quantity
from podferry.contract.spec import PREFIX, SHM, DatasetMode, DatasetSpec, FerrySpec, Medium, MountedDataset
from podferry.contract.tmpfs_cost import MIB
from podferry.webhook.pod.pod_json import Json, mounts_of, volumes_of

DATASET_VOLUME = "podferry-data"
CLAIM_VOLUME = "podferry-claim"
AGENT_CLAIM_VOLUME = "podferry-pvc"
"""Of the agent: the trainer has no mount of it."""
IMAGE_VOLUME = "podferry-image"
"""The admission policy refuses a pod whose image volumes the API server has dropped, by this name."""
CHECKPOINT_VOLUME = "podferry-checkpoints"
OUTPUT_VOLUME = "podferry-outputs"
CONTROL_VOLUME = "podferry-control"
SHM_VOLUME = "podferry-shm"
DATASET_SECRET_VOLUME = "podferry-dataset-secret"  # noqa: S105 - a volume's name
CHECKPOINT_SECRET_VOLUME = "podferry-checkpoints-secret"  # noqa: S105 - a volume's name
OUTPUT_SECRET_VOLUME = "podferry-outputs-secret"  # noqa: S105 - a volume's name
TOKEN_VOLUME = "podferry-cache-token"  # noqa: S105 - a volume's name
CHECKPOINT_SUBPATH = "files"
"""The trainer's part of the checkpoint volume; hard-link holds are next to it, safe from its `rm -rf`."""
RESTORED_SUBPATH = "restored"
"""A part of the same volume that the gate writes and the trainer only reads."""
ROOT_DIR = "/podferry"
CONTROL_DIR = f"{ROOT_DIR}/control"
DATASET_DIR = f"{ROOT_DIR}/data"
DATASETS_DIR = f"{ROOT_DIR}/datasets"
CHECKPOINT_VOLUME_DIR = f"{ROOT_DIR}/checkpoints"
CHECKPOINT_DIR = f"{CHECKPOINT_VOLUME_DIR}/{CHECKPOINT_SUBPATH}"
PINS_DIR = f"{CHECKPOINT_VOLUME_DIR}/pins"
SUBPATH_MOUNT_DIR = f"{ROOT_DIR}/made"
OUTPUT_DIR = f"{ROOT_DIR}/outputs"
SHARED_DIR, SHARED_DIRS = f"{ROOT_DIR}/shared", f"{ROOT_DIR}/shared-datasets"
DATASET_SECRET_DIR = f"{ROOT_DIR}/secrets/dataset"
DATASET_SECRETS_DIR = f"{ROOT_DIR}/secrets/datasets"
CHECKPOINT_SECRET_DIR = f"{ROOT_DIR}/secrets/checkpoints"
OUTPUT_SECRET_DIR = f"{ROOT_DIR}/secrets/outputs"
"""Mount points in the agent's container."""

RESTORED_DIR = f"{ROOT_DIR}/restored"
RESTORED_FILE = f"{RESTORED_DIR}/path"
"""In the gate and in the trainer: the file that says what training resumes from."""

CONTROL_BYTES = 16 * MIB
"""Journal and status take kilobytes; the memory sum counts them as resident."""
SECRET_FILE_MODE = 0o444
"""The agent may not own a Secret's files, and they are mounted nowhere else."""


def dataset_dir(dataset: DatasetSpec) -> str:
    """The agent's mount point of a dataset."""
    return f"{DATASETS_DIR}/{dataset.name}" if dataset.name else DATASET_DIR


def shared_dir(dataset: MountedDataset) -> str:
    """The agent's mount point of a stage that a holder shares."""
    return f"{SHARED_DIRS}/{dataset.name}" if dataset.name else SHARED_DIR


def dataset_secret_dir(dataset: DatasetSpec) -> str:
    """The agent's mount point of a dataset's Secret."""
    return f"{DATASET_SECRETS_DIR}/{dataset.name}" if dataset.name else DATASET_SECRET_DIR


def _named(volume: str, dataset: DatasetSpec | MountedDataset) -> str:
    return f"{volume}-{dataset.name}" if dataset.name else volume


def volumes(spec: FerrySpec, memory: MemorySum, *, with_shm: bool) -> Iterator[dict[str, Any]]:
    """The volumes that the pod gets; `with_shm` adds one for the trainer's `/dev/shm`."""
    if spec.needs_agent:
        yield _memory(CONTROL_VOLUME, CONTROL_BYTES)
    for dataset, volume in zip(spec.datasets, memory.data, strict=True):
        build = _disk if volume.medium is Medium.DISK else _memory
        yield build(_named(DATASET_VOLUME, dataset), volume.bytes)
    yield from map(_mounted, spec.mounted)
    for name, claim, fields in _agent_claims(spec):
        yield {"name": name, "persistentVolumeClaim": {"claimName": claim, **fields}}
    if spec.checkpoints:
        yield _memory(CHECKPOINT_VOLUME, memory.checkpoint_volume)
    if spec.outputs:
        yield _memory(OUTPUT_VOLUME, memory.output_volume)
    if with_shm:
        yield _memory(SHM_VOLUME, memory.shm_volume)
    for name, _, secret_name in _secrets(spec):
        # Optional: the agent reports a missing one. A required one would leave the pod in Init forever.
        secret = {"secretName": secret_name, "optional": True, "defaultMode": SECRET_FILE_MODE}
        yield {"name": name, "secret": secret}


def sidecar_mounts(spec: FerrySpec) -> Iterator[dict[str, Any]]:
    """Mounts of the agent's container."""
    yield _mount(CONTROL_VOLUME, CONTROL_DIR)
    for dataset in spec.datasets:
        yield _mount(_named(DATASET_VOLUME, dataset), dataset_dir(dataset))
    for shared in spec.shared:
        yield {**_mount(_mounted_name(shared), shared_dir(shared)), "readOnly": True}
    if spec.checkpoints:
        yield _mount(CHECKPOINT_VOLUME, CHECKPOINT_VOLUME_DIR)
        # This mount makes the kubelet create the directory before the agent starts. The agent uses the
        # mount of the full volume, since hard links cannot cross mounts.
        yield {**_mount(CHECKPOINT_VOLUME, SUBPATH_MOUNT_DIR), "subPath": CHECKPOINT_SUBPATH}
    if spec.outputs:
        yield {**_mount(OUTPUT_VOLUME, OUTPUT_DIR), "readOnly": True}
    for name, claim, read_only in _agent_claims(spec):
        yield {**_mount(name, f"{CLAIMS_DIR}/{claim}"), **read_only}
    for name, path, _ in _secrets(spec):
        yield {**_mount(name, path), "readOnly": True}


def gate_mounts(spec: FerrySpec) -> Iterator[dict[str, Any]]:
    """Mounts of the gate: what it writes for the trainer."""
    if spec.checkpoints:
        yield {**_mount(CHECKPOINT_VOLUME, RESTORED_DIR), "subPath": RESTORED_SUBPATH}


def trainer_mounts(spec: FerrySpec, *, with_shm: bool) -> Iterator[dict[str, Any]]:
    """Mounts of the trainer: datasets read-only, the visible part of checkpoints, outputs."""
    if with_shm:
        yield _mount(SHM_VOLUME, SHM)
    for dataset in spec.datasets:
        yield {**_mount(_named(DATASET_VOLUME, dataset), dataset.path), "readOnly": True}
    for mounted in spec.mounted:
        mount = {**_mount(_mounted_name(mounted), mounted.path), "readOnly": True}
        claimed = mounted.mode is DatasetMode.SHARE and mounted.parsed.uri.key
        yield {**mount, "subPath": mounted.parsed.uri.key} if claimed else mount
    if spec.checkpoints:
        yield {**_mount(CHECKPOINT_VOLUME, spec.checkpoints.path), "subPath": CHECKPOINT_SUBPATH}
        yield from ({**mount, "readOnly": True} for mount in gate_mounts(spec))
    if spec.outputs:
        yield _mount(OUTPUT_VOLUME, spec.outputs.path)


def volume_problems(pod: Json, names: Set[str]) -> Iterator[Problem]:
    """The pod's own volumes whose `names` podferry needs; others may begin like podferry's."""
    for name in sorted(names & volumes_of(pod).keys()):
        remedy = "Rename it; if the pod is a copy of an injected one, use the manifest of the original"
        yield Problem("the pod already has a volume of a name that podferry uses", name, remedy)


def volume_names(spec: FerrySpec) -> Iterator[str]:
    """The names of volumes that podferry needs, whether or not the pod gets each of them."""
    yield from (CONTROL_VOLUME, SHM_VOLUME)
    yield from (_named(DATASET_VOLUME, one) for one in spec.datasets)
    yield from map(_mounted_name, spec.mounted)
    yield from (name for name, _, _ in _agent_claims(spec))
    yield from [CHECKPOINT_VOLUME] if spec.checkpoints else []
    yield from [OUTPUT_VOLUME] if spec.outputs else []
    yield from (name for name, _, _ in _secrets(spec))
    yield TOKEN_VOLUME


def has_shm(container: Json) -> bool:
    """Whether something is already mounted on `/dev/shm`."""
    return any(_directory(mount) == f"{SHM}/" for mount in mounts_of(container))


def mount_problems(pod: Json, container: Json, spec: FerrySpec) -> Iterator[Problem]:
    """The user's mounts that podferry's mounts cannot be combined with."""
    found, mounts = volumes_of(pod), [(_directory(one), one) for one in mounts_of(container)]
    for theirs, mount in mounts if spec.checkpoints else []:
        if theirs.startswith(f"{RESTORED_DIR}/"):
            what = "the training container mounts something where podferry says what training resumes from"
            yield Problem(what, _both(mount, RESTORED_DIR), "Mount it elsewhere")
    for key, path in directories_of(spec):
        own = f"{path}/"
        for theirs, mount in mounts:
            if theirs.startswith(own):
                yield _covering(mount, f"{PREFIX}{key}", path)
            elif own.startswith(theirs):
                yield from _enclosing(found, mount, f"{PREFIX}{key}", path)


def _agent_claims(spec: FerrySpec) -> Iterator[tuple[str, str, dict[str, bool]]]:
    """(volume, claim, fields that keep it from being written) of each claim that the agent needs."""
    for number, (claim, written) in enumerate(claims_of(spec).items()):
        yield f"{AGENT_CLAIM_VOLUME}-{number}", claim, {} if written else {"readOnly": True}


def _secrets(spec: FerrySpec) -> Iterator[tuple[str, str, str]]:
    """(volume, agent's mount point, Secret's name) of each direction that has a Secret."""
    sections = (
        *((_named(DATASET_SECRET_VOLUME, one), dataset_secret_dir(one), one) for one in spec.datasets),
        (CHECKPOINT_SECRET_VOLUME, CHECKPOINT_SECRET_DIR, spec.checkpoints),
        (OUTPUT_SECRET_VOLUME, OUTPUT_SECRET_DIR, spec.outputs),
    )
    for name, path, section in sections:
        if section and section.access.secret:
            yield name, path, section.access.secret


def _covering(mount: dict[str, Any], key: str, path: str) -> Problem:
    """A mount on or below podferry's directory."""
    what = f"{key}: the training container mounts something on or below podferry's directory"
    return Problem(what, _both(mount, path), f"Remove that mount or choose another {key}")


def _enclosing(
    found: dict[str, dict[str, Any]], mount: dict[str, Any], key: str, path: str
) -> Iterator[Problem]:
    """A mount around podferry's directory, if nothing can be mounted inside it."""
    subpath, theirs = mount.get("subPath") or mount.get("subPathExpr"), _shown(mount)
    if subpath:
        what = f"{key}: the directory is inside a mount with a subPath, where nested mounts stay empty"
        remedy = f"Mount the volume without subPath, or choose {key} outside {theirs}"
        yield Problem(what, f"{_both(mount, path)}, subPath {subpath!r}", remedy)
    elif mount.get("readOnly") or "emptyDir" not in found.get(str(mount.get("name")), {}):
        what = f"{key}: the directory is inside a mount in which podferry cannot create its mount point"
        yield Problem(what, _both(mount, path), f"Choose {key} outside {theirs}")


def _both(mount: dict[str, Any], path: str) -> str:
    return f"volume {mount.get('name')} at {_shown(mount)}, podferry's at {path}"


def _shown(mount: dict[str, Any]) -> str:
    return _directory(mount).rstrip("/") or "/"


def _directory(mount: dict[str, Any]) -> str:
    """Where it is mounted, with a slash at the end, so that prefixes are whole names."""
    return str(mount.get("mountPath", "")).rstrip("/") + "/"


def _memory(name: str, size: int) -> dict[str, Any]:
    return {"name": name, "emptyDir": {"medium": "Memory", "sizeLimit": exact_quantity(size)}}


def _disk(name: str, size: int) -> dict[str, Any]:
    return {"name": name, "emptyDir": {"sizeLimit": exact_quantity(size)}}


def _mounted_name(dataset: MountedDataset) -> str:
    return _named(CLAIM_VOLUME if dataset.mode is DatasetMode.SHARE else IMAGE_VOLUME, dataset)


def _mounted(dataset: MountedDataset) -> dict[str, Any]:
    name, uri = _mounted_name(dataset), dataset.parsed.uri
    if dataset.mode is DatasetMode.SHARE:
        return {"name": name, "persistentVolumeClaim": {"claimName": uri.bucket, "readOnly": True}}
    return {"name": name, "image": {"reference": image_of(uri)}}


def _mount(name: str, path: str) -> dict[str, Any]:
    return {"name": name, "mountPath": path}
