"""The binaries of a Kubernetes node, built once from Go modules and then cached."""

from __future__ import annotations

import hashlib
import io
import os
import shutil
import tarfile
from pathlib import Path

from tests.cluster.archive import docker_archive, owned_by_root
from tests.cluster.files import locked, say
from tests.cluster.layout import KUBERNETES, PAUSE_IMAGE
from tests.cluster.process import CAGE, ClusterError, run

SOURCE = Path(__file__).parent / "kubernetes"
PARTS = (
    "etcd",
    "kube-apiserver",
    "kube-controller-manager",
    "kube-proxy",
    "kube-scheduler",
    "kubectl",
    "kubelet",
)
_GO_NEEDED = (1, 24)  # what go.mod asks for


def kubernetes(cache: Path) -> Path:
    """The directory of the binaries, one file per part, and `pause.tar`.

    The first call builds them, in minutes; the cache is keyed by the sources and the Go version.

    Raises:
        ClusterError: Go is missing, or the build failed.
    """
    target = cache / f"kubernetes-{source_key()}"
    if target.is_dir():
        return target
    with locked(cache / "locks" / "build"):
        if not target.is_dir():
            _build(target)
    return target


def program(cache: Path, source: Path, minutes: str) -> Path:
    """A program of the tests' own, from a folder with `go.mod`, named like it; built by the first call.

    `minutes` says how long that takes.

    Raises:
        ClusterError: Go is missing, or the build failed.
    """
    made = cache / f"{source.name}-{source_key(source)}"
    with locked(cache / "locks" / source.name):
        if not made.exists():
            say(f"building {source.name} from Go modules: {minutes} minutes, once per version and machine")
            part = made.with_suffix(".part")
            part.mkdir(parents=True, exist_ok=True)
            _go_build(source, ".", part / source.name, part)
            (part / source.name).replace(made)
            shutil.rmtree(part)
    return made


def source_key(source: Path = SOURCE) -> str:
    """What a program is made of: a hash of the sources and of the Go version."""
    digest = hashlib.sha256(_go_version(source).encode())
    for path in sorted(source.rglob("*")):
        if path.is_file():
            digest.update(path.relative_to(source).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


def _go_version(source: Path) -> str:
    go = shutil.which("go")
    wanted = ".".join(map(str, _GO_NEEDED))
    if not go:
        raise ClusterError(
            "there is neither KUBECONFIG, nor a Docker engine, nor Go: "
            f"install Go {wanted} or later, or have one of the others"
        )
    version = run([go, "env", "GOVERSION", "GOOS", "GOARCH"], cwd=source).strip()
    number = version.split()[0].removeprefix("go").split(".")[:2]
    if tuple(int("".join(filter(str.isdigit, part)) or 0) for part in number) < _GO_NEEDED:
        raise ClusterError(
            f"Go {wanted} or later is needed, this is {version.split()[0]}: install a later one"
        )
    return version


def _build(target: Path) -> None:
    say(f"building Kubernetes {KUBERNETES} from Go modules: 10 to 30 minutes, once per version and machine")
    part = target.with_suffix(".part")
    shutil.rmtree(part, ignore_errors=True)
    (part / "tmp").mkdir(parents=True)
    _go_build(SOURCE, ".", part / "kubernetes", part / "tmp")
    _go_build(SOURCE, "./pause", part / "pause", part / "tmp")
    for name in PARTS:
        (part / name).symlink_to("kubernetes")
    _pause_image(part / "pause", part / "pause.tar")
    shutil.rmtree(part / "tmp")
    part.replace(target)


def _go_build(source: Path, package: str, output: Path, scratch: Path) -> None:
    major, minor, _ = KUBERNETES.split(".")
    version = {"gitVersion": f"v{KUBERNETES}", "gitMajor": major, "gitMinor": minor}
    stamps = [f"-X k8s.io/component-base/version.{name}={value}" for name, value in version.items()]
    flags = ["-trimpath", "-ldflags", " ".join(["-s", "-w", *stamps])]
    # Static, so that the pause program runs in an empty image; nice, so that others can work meanwhile.
    environment = {"CGO_ENABLED": "0", "GOTMPDIR": os.fspath(scratch)}
    command = [*CAGE, "nice", "-n", "10", "go", "build", *flags, "-o", str(output), package]
    run(command, cwd=source, environment=environment, timeout=3600, progress=f"building {output.name}")


def _pause_image(program: Path, archive: Path) -> None:
    layer = io.BytesIO()
    with tarfile.open(fileobj=layer, mode="w") as tar:
        tar.add(program, "pause", filter=owned_by_root)
    rootfs = archive.with_suffix(".layer")
    rootfs.write_bytes(layer.getvalue())
    docker_archive(rootfs, archive, PAUSE_IMAGE, {"Entrypoint": ["/pause"]})
    rootfs.unlink()
