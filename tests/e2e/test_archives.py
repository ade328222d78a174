"""Archives and packs in a real pod: the trainer finds files; invalid archives are refused."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import tarfile
from collections.abc import Mapping

from podferry.webhook.pod.pod_json import GATE
from tests.e2e.manifests import TRAINER, Object, container, pod
from tests.e2e.namespace import Namespace
from tests.e2e.outcome import Outcome
from tests.e2e.site import Site

FILES = {
    f"{number % 3}/{number:03}.jpg": hashlib.shake_256(bytes([number])).digest(9_000) for number in range(150)
}
DIGESTS = {name: hashlib.sha256(data).hexdigest() for name, data in FILES.items()}
LOOKS = """
import hashlib, json, os, pathlib
data = pathlib.Path(os.environ["PODFERRY_DATASET"])
print(json.dumps({str(file.relative_to(data)): hashlib.sha256(file.read_bytes()).hexdigest()
                  for file in data.rglob("*") if file.is_file()}))
"""


def looking(name: str, annotations: Mapping[str, str]) -> Object:
    return pod(name, container(script=LOOKS), annotations=annotations)


def found(outcome: Outcome) -> dict[str, str]:
    """The trainer's files: digests by name."""
    assert outcome.succeeded, outcome
    seen: dict[str, str] = json.loads(outcome[TRAINER].log.splitlines()[-1])
    return seen


def tar_gz(files: Mapping[str, bytes], link: str = "") -> bytes:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as tar:
        for name, data in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
        if link:
            info = tarfile.TarInfo(link)
            info.type, info.linkname = tarfile.SYMTYPE, "/etc/passwd"
            tar.addfile(info)
    return gzip.compress(made.getvalue())


def test_an_archive_is_unpacked_into_its_directory(site: Site, namespace: Namespace) -> None:
    data = site.upload_dataset("archived", {"deep/train.tar.gz": tar_gz(FILES), "labels.csv": b"1"})
    annotations = namespace.training_annotations(data, checkpoints="", unpack="always")
    seen = found(namespace.run(looking("archived", annotations)))
    assert seen.pop("labels.csv") == hashlib.sha256(b"1").hexdigest()
    assert seen == {f"deep/{name}": digest for name, digest in DIGESTS.items()}


def test_a_pack_is_unpacked_by_default_and_selections_apply_to_its_files(
    site: Site, namespace: Namespace
) -> None:
    source = site.upload_dataset("to-pack", FILES)
    target = site.bucket.uri("datasets/packed")
    made = site.bucket.podferry_json("dataset", "pack", source, target)
    assert (made["files"], made["shards"]) == (len(FILES), 1)
    assert site.bucket.podferry_json("dataset", "verify", target)["problems"] == []
    assert (
        found(
            namespace.run(
                looking("complete", namespace.training_annotations(made["reference"], checkpoints=""))
            )
        )
        == DIGESTS
    )
    some = found(
        namespace.run(
            looking("some", namespace.training_annotations(target, checkpoints="", include="1/*.jpg"))
        )
    )
    assert some == {name: digest for name, digest in DIGESTS.items() if name.startswith("1/")}


def test_an_archive_with_a_link_is_refused_with_a_reason(site: Site, namespace: Namespace) -> None:
    data = site.upload_dataset("linked", {"train.tar.gz": tar_gz(FILES, link="0/passwd")})
    outcome = namespace.run(
        looking("linked", namespace.training_annotations(data, checkpoints="", unpack="always"))
    )
    assert not outcome.succeeded
    assert "the archive train.tar.gz holds a symbolic link ('0/passwd')" in outcome[GATE].log
