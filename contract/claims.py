"""Claims of the pod's namespace, `pvc://CLAIM/PATH`: which ones the agent reads or writes, and where it does.

What a claim is made of, only its cluster knows: NFS, SMB, Azure Files, JuiceFS, a disk of the node. Their own
protocols need drivers and mounts, which a pod gets by a claim alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from podferry.contract.errors import Problem
from podferry.contract.spec import PREFIX, FerrySpec
from podferry.contract.uri import Uri, parse_uri

SCHEME = "pvc"
FORM = "pvc://CLAIM/PATH"
CLAIMS_DIR = "/podferry/claims"
"""In the agent's container: each claim has a directory of its name there."""
CLAIM = re.compile(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?")
"""DNS-1123 subdomain. Source: Kubernetes, names of PersistentVolumeClaims."""

_AS_A_CLAIM = "create a claim of a volume of {}, and write pvc://CLAIM/PATH"
NOT_STORES = {
    "nfs": _AS_A_CLAIM.format("NFS"),
    "juicefs": _AS_A_CLAIM.format("JuiceFS's CSI driver"),
    "jfs": _AS_A_CLAIM.format("JuiceFS's CSI driver"),
    "cifs": "write smb://HOST/SHARE/PATH",
    "image": "image volumes are only mounted, for a dataset: set podferry.io/mode to image",
}
"""Schemes that no engine opens, and what to do instead."""


def claim_path_problem(key: str, uri: Uri) -> Problem | None:
    """Why a location of this scheme names no claim and path in it, if so."""
    if CLAIM.fullmatch(uri.bucket) and not {".", ".."} & set(uri.key.split("/")):
        return None
    remedy = f"Write {FORM} without . and .. in the path"
    return Problem(f"{PREFIX}{key}: not a claim and a path in it", str(uri), remedy)


def hint_for(scheme: str) -> str:
    """What to do instead of a scheme that no engine opens, as a sentence without a full stop; or empty."""
    text = NOT_STORES.get(scheme, "")
    return text[:1].upper() + text[1:]


def claims_of(spec: FerrySpec) -> dict[str, bool]:
    """The claims that the agent needs, by name, and whether it writes to them."""
    found: dict[str, bool] = {}
    for uri, written in _locations(spec):
        if uri.scheme == SCHEME:
            found[uri.bucket] = found.get(uri.bucket, False) or written
    return found


def _locations(spec: FerrySpec) -> Iterator[tuple[Uri, bool]]:
    for dataset in spec.datasets:
        yield dataset.parsed.uri, False
    if spec.checkpoints:
        yield spec.checkpoints.parsed, not spec.checkpoints.read_only
        if "://" in spec.checkpoints.restore:
            yield parse_uri(spec.checkpoints.restore), False
    if spec.outputs:
        yield spec.outputs.parsed, True
