"""Images without a Docker engine: a base made from Debian's packages, Dockerfiles built by buildah."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from tests.cluster.archive import docker_archive
from tests.cluster.files import locked, say
from tests.cluster.layout import BASE_IMAGE, on_overlay
from tests.cluster.process import CAGE, ClusterError, answers, run

# bookworm's Python is 3.11. ca-certificates also gives the mounted authorities of the host a path.
_SUITE = "bookworm"
_PACKAGES = ("ca-certificates", "python3", "python3-pip", "python3-venv")
_UNWANTED = ("/usr/share/doc/*", "/usr/share/man/*", "/usr/share/locale/*", "/usr/share/info/*")
# What python:3.11-slim-bookworm has and Debian has not, so that one Dockerfile builds on either: `python`,
# and a pip that may install outside of a virtual environment. The empty pip.conf is where a build mounts
# the host's: mounting makes the file, and so it would otherwise stay in images as a trace.
_CUSTOMIZE = (
    'ln -s python3 "$1/usr/bin/python"',
    'rm -f "$1"/usr/lib/python3*/EXTERNALLY-MANAGED',
    'touch "$1/etc/pip.conf"',
)
_PIP_CONFIG = "/etc/pip.conf"
# Removing an image takes up to three seconds; a build adds one.
_KEPT, _REMOVALS = timedelta(days=1), 5
_AUTHORITIES = "/etc/ssl/certs/ca-certificates.crt"


def base(cache: Path) -> Path:
    """The archive of the base image, built on the first call (needs Debian's registry)."""
    recipe = repr((_SUITE, _PACKAGES, _UNWANTED, _CUSTOMIZE))
    archive = cache / f"base-{hashlib.sha256(recipe.encode()).hexdigest()[:16]}.tar"
    if not archive.exists():
        with locked(cache / "locks" / "images"):
            if not archive.exists():
                _build_base(cache, archive)
    return archive


def _build_base(cache: Path, archive: Path) -> None:
    say(f"building {BASE_IMAGE} from Debian's packages")
    with _scratch(cache) as scratch:
        rootfs = scratch / "rootfs.tar"
        excludes = [f"--dpkgopt=path-exclude={path}" for path in _UNWANTED]
        customize = [f"--customize-hook={line}" for line in _CUSTOMIZE]
        include = f"--include={','.join(_PACKAGES)}"
        bootstrap = ["mmdebstrap", "--mode=root", "--variant=minbase", "--quiet", include]
        command = [*CAGE, *bootstrap, *excludes, *customize, _SUITE, str(rootfs)]
        run(command, timeout=1200, environment={"TMPDIR": os.fspath(scratch)}, progress="building the base")
        path = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
        docker_archive(rootfs, scratch / "image.tar", BASE_IMAGE, {"Cmd": ["python3"], "Env": [path]})
        (scratch / "image.tar").replace(archive)


@dataclass(frozen=True)
class Recipe:
    """What to build.

    Attributes:
        tag: Of the image; it begins with "localhost/".
        dockerfile: Gets the base image's name as the build argument BASE.
        context: The directory that COPY reads.
        arguments: More build arguments.

    Raises:
        ClusterError: The tag would not mean the same to the builder and to the kubelet.
    """

    tag: str
    dockerfile: Path
    context: Path
    arguments: Mapping[str, str]

    def __post_init__(self) -> None:
        if not re.fullmatch(r"localhost/[a-z0-9/._-]+:[\w.-]+", self.tag):
            raise ClusterError(f"{self.tag!r} does not name a local image: write localhost/NAME:VERSION")

    def words(self, base: str) -> list[str]:
        """The arguments that `buildah bud` and `docker build` share."""
        given = {"BASE": base} | dict(self.arguments)
        build_arguments = [f"--build-arg={name}={value}" for name, value in given.items()]
        return [*build_arguments, f"--tag={self.tag}", f"--file={self.dockerfile}", str(self.context)]


def build(cache: Path, recipe: Recipe, archive: Path) -> None:
    """Build a Dockerfile and write the image to `archive`, as `docker save` would.

    Args:
        cache: Holds the base image and the layers of earlier builds.
        recipe: What to build.
        archive: Where to write.
    """
    base_archive = base(cache)
    with locked(cache / "locks" / "images"), _scratch(cache) as scratch:
        buildah = _buildah(cache, scratch)
        if not answers([*buildah, "inspect", "--type=image", BASE_IMAGE], timeout=60):
            run([*buildah, "pull", "--quiet", f"docker-archive:{base_archive}"], timeout=600)
        options = ["--isolation=chroot", "--pull-never", "--layers", "--force-rm", *_pip_access(scratch)]
        say(f"building {recipe.tag}")
        run(
            [*buildah, "bud", *options, *recipe.words(BASE_IMAGE)],
            timeout=1800,
            progress="building the image",
        )
        archive.unlink(missing_ok=True)
        run([*buildah, "push", "--quiet", recipe.tag, f"docker-archive:{archive}:{recipe.tag}"], timeout=600)
        _remove_old(buildah)


def _remove_old(buildah: list[str]) -> None:
    """Remove images that a later build has replaced: each build leaves 200 MB, which nothing else frees."""
    columns = "{{.ID}} {{.CreatedAtRaw}}"
    listed = run([*buildah, "images", "--all", "--filter=dangling=true", f"--format={columns}"], timeout=300)
    if old := outdated(listed, datetime.now(UTC)):
        run([*buildah, "rmi", *old], timeout=600)


def outdated(listed: str, now: datetime) -> list[str]:
    """The ids of the images that are older than a day, at most `_REMOVALS`, the oldest first.

    A day, since builds of several working copies in turn share their layers.

    Args:
        listed: A line for each image: its id and the time of its creation, as buildah prints it.
        now: The present.
    """
    images = [line.split() for line in listed.splitlines() if line.strip()]
    created = {image: datetime.fromisoformat(f"{day}T{time[:8]}+00:00") for image, day, time, *_ in images}
    return sorted((image for image in created if now - created[image] > _KEPT), key=created.__getitem__)[
        :_REMOVALS
    ]


def _buildah(cache: Path, scratch: Path) -> list[str]:
    # With this isolation, buildah's only use of a network is a directory in /etc, unless configured.
    settings = scratch / "containers.conf"
    settings.write_text(f'[network]\nnetwork_config_dir = "{scratch}/networks"\n')
    environment = ["env", f"TMPDIR={scratch}", f"CONTAINERS_CONF={settings}"]
    places = ["--root", str(cache / "images"), "--runroot", str(scratch / "run")]
    driver = "vfs" if on_overlay(cache) else "overlay"
    return [*CAGE, *environment, "buildah", *places, "--storage-driver", driver]


def _pip_access(scratch: Path) -> list[str]:
    """Give the build this machine's access to a package index: pip's configuration and the authorities.

    They are mounted while a RUN runs; they are in neither the image nor the Dockerfile.
    """
    config = scratch / "pip.conf"
    config.write_text(pip_config(run(["python3", "-m", "pip", "config", "list"])))
    volumes = [f"--volume={config}:{_PIP_CONFIG}:ro"]
    if Path(_AUTHORITIES).exists():
        volumes.append(f"--volume={_AUTHORITIES}:{_AUTHORITIES}:ro")
    return volumes


def pip_config(listed: str) -> str:
    """The pip.conf that gives a build the index and the authorities of `pip config list`'s output.

    Only settings about the source of packages: paths of this machine mean nothing in the build. If a
    file and the environment differ, the environment, listed as `:env:`, wins as it does in pip.
    """
    lent = ("index-url", "extra-index-url", "trusted-host", "proxy", "timeout", "default-timeout", "retries")
    chosen: dict[str, str] = {}
    for line in sorted(listed.splitlines(), key=lambda line: line.startswith(":env:")):
        name, _, value = line.partition("=")
        key = name.rpartition(".")[2]
        if key in lent:
            chosen[key.removeprefix("default-")] = value.strip().strip("'\"").replace("\\n", " ")
        if key == "cert":
            chosen["cert"] = _AUTHORITIES
    return "[global]\n" + "".join(f"{key} = {value}\n" for key, value in sorted(chosen.items()))


@contextmanager
def _scratch(cache: Path) -> Iterator[Path]:
    """A directory for one build. Leftovers of a killed build are removed first, under the lock."""
    parent = cache / "scratch"
    if parent.exists():
        shutil.rmtree(parent)
    parent.mkdir(parents=True)
    try:
        yield Path(tempfile.mkdtemp(dir=parent))
    finally:
        shutil.rmtree(parent)
