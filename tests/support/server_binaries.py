"""Installs real servers from their own registries, once, into the user's cache."""

import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import NamedTuple

from tests.cluster.files import locked, say
from tests.cluster.packages import WAITS

GO = {
    "versitygw": "github.com/versity/versitygw/cmd/versitygw@v1.8.0",
    "fake-gcs-server": "github.com/fsouza/fake-gcs-server@v1.56.1",
    "minio": "github.com/minio/minio@v0.0.0-20260212201848-7aac2a2c5b7c",
}
NPM = {"azurite": "azurite@3.35.0"}
MAVEN = {"hadoop": "3.4.1"}
"""As in the file that names its packages."""
POM = Path(__file__).with_name("hadoop.pom.xml")


class Debian(NamedTuple):
    """Packages that are unpacked into one folder; Debian's release has their exact version.

    Attributes:
        version: Of the first package, roughly: it names the folder.
        program: Its path.
        packages: The program's, and those of libraries that a small system lacks.
        complete: Whether to add every package that installing them would add.
    """

    version: str
    program: str
    packages: tuple[str, ...]
    complete: bool = False


DEBIAN = {
    "prometheus": Debian("2", "usr/bin/prometheus", ("prometheus",)),
    "sshd": Debian("9", "usr/sbin/sshd", ("openssh-server", "openssh-sftp-server", "libwrap0")),
    "sftp": Debian("9", "usr/bin/sftp", ("openssh-client", "libedit2")),
    "nginx": Debian("1", "usr/sbin/nginx", ("nginx",)),
    "wget": Debian("1", "usr/bin/wget", ("wget",)),
    "vsftpd": Debian("3", "usr/sbin/vsftpd", ("vsftpd", "libwrap0")),
    "lftp": Debian("4", "usr/bin/lftp", ("lftp",)),
    "krb5kdc": Debian(
        "1",
        "usr/sbin/krb5kdc",
        (
            *("krb5-kdc", "krb5-admin-server", "krb5-user", "libkadm5srv-mit12", "libkadm5clnt-mit12"),
            *("libgssrpc4", "libkdb5-10", "libverto1", "libverto-libev1", "libev4"),
        ),
    ),
    "samba": Debian("4", "usr/sbin/smbd", ("samba", "smbclient"), complete=True),
}


def cache():
    """The cache directory of the servers."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "podferry" / "servers"


def installed(name):
    """The server's program, or of Hadoop the directory of its classes, installed if it is missing.

    Raises:
        RuntimeError: Its tool is missing or the build fails: a missing server is a failure, never a skip.
    """
    build = _go if name in GO else _npm if name in NPM else _maven if name in MAVEN else _debian
    debian = {found: package.version for found, package in DEBIAN.items()}
    version = {**GO, **NPM, **MAVEN, **debian}[name].rpartition("@")[2]
    home = cache() / f"{name}-{version}"
    places = {
        _go: name,
        _npm: f"node_modules/.bin/{name}-blob",
        _maven: "classes",
        _debian: DEBIAN[name].program if name in DEBIAN else "",
    }
    program = home / places[build]
    if not program.exists():
        with locked(cache() / "locks" / name):  # builds next to each other would only slow each other down
            if not program.exists():
                say(f"installing {name} {version}: minutes, once per version and machine")
                _build(home, lambda folder: build(name, folder))
    return program


def _build(home, build):
    """Build into a folder next to `home` and rename it, so that a partial build is never used."""
    home.parent.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix=".building-", dir=home.parent))
    try:
        build(folder)
        if not home.exists():
            folder.rename(home)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _go(name, folder):
    _run(["go", "install", "-ldflags=-s -w", GO[name]], folder, GOBIN=str(folder), GOFLAGS="-mod=mod")


def _npm(name, folder):
    _run(["npm", "install", "--no-audit", "--no-fund", "--prefix", str(folder), NPM[name]], folder)


def _maven(name, folder):
    shutil.copy(POM, folder / "pom.xml")
    command = ["mvn", "--quiet", "--batch-mode", "dependency:copy-dependencies"]
    _run([*command, "-DoutputDirectory=classes"], folder)


def _debian(name, folder):
    """Unpacked, not installed: the system stays as it is."""
    if os.geteuid() == 0:  # lists may be old or absent; they need root
        _run(["apt-get", WAITS, "update", "-q"], folder)
    # Without privileges of its own, `_apt` could not write to this folder.
    _run(["apt-get", "-oAPT::Sandbox::User=", "download", "-q", *_packages(DEBIAN[name])], folder)
    for package in folder.glob("*.deb"):
        _run(["dpkg-deb", "--extract", str(package), str(folder)], folder)
        package.unlink()


def _packages(debian):
    if not debian.complete:
        return debian.packages
    command = ["apt-get", "--simulate", "--no-install-recommends", "install", *debian.packages]
    plan = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    missing = (line.split()[1] for line in plan.splitlines() if line.startswith("Inst "))
    return sorted({*debian.packages, *missing})


def libraries(name):
    """The variable with which a program of `DEBIAN` finds the libraries that came with it."""
    home = Path(str(installed(name)).removesuffix(f"/{DEBIAN[name].program}"))
    # Samba's own are in a folder of their own.
    folders = [
        str(folder) for found in ("*-linux-*", "*-linux-*/samba") for folder in home.glob(f"usr/lib/{found}")
    ]
    return {"LD_LIBRARY_PATH": ":".join(folders)} if folders else {}


def _run(command, folder, **environ):
    if shutil.which(command[0]) is None:
        raise RuntimeError(f"{command[0]} is not installed: the tests against real servers need it")
    done = subprocess.run(
        command, cwd=folder, env={**os.environ, **environ}, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} failed:\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}")
