"""nginx as a store: S3's GET as static files, a canned listing; plain, over TLS, with latency, and far away.

It does less than any real store, so that it leaves the clients as much of the machine as a server can.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from string import Template

from canned import files_below, lines
from serving import BUCKET, KEYS, Site, packages, real_servers

from podferry.webhook.cluster.certificates import renew_if_needed

MODULES = "/usr/lib/nginx/modules"
NEEDS = {"nginx": "nginx", f"{MODULES}/ngx_http_lua_module.so": "libnginx-mod-http-lua"}
SYSTEM = "/usr/sbin"
"""Where Debian puts nginx, which a user's PATH need not hold."""
HERE = Path(__file__).parent
ADDRESS = "127.0.0.1"
HOST = "localhost"
"""The certificate's."""
LATENCY_MS = 20
"""To the first byte: what object stores in the same region take at least."""
LISTING_MS = 100
"""To a page of the listing of a place that is slow with it."""
SITES = ("plain", "tls", "latency", "distant", "counted")
COUNTED_LOG = "counted.log"
RATE = 80
"""MiB a second of one connection. Source: Amazon's "Performance guidelines for Amazon S3", 85 to 90 MB/s."""
PLACES = f"""\
location = /{BUCKET} {{ content_by_lua_block {{ require("listing").answer() }} }}
location = /{BUCKET}/ {{ content_by_lua_block {{ require("listing").answer() }} }}
location ~ ^/{BUCKET}/[^.]+$ {{ return 404; }}
"""
"""Names without a dot are directories here, which are no objects: nginx would redirect to them."""


@contextmanager
def nginx(folder: Path, root: Path) -> Iterator[dict[str, Site]]:
    """Nginx over the files below `root/bucket`, which do not change meanwhile.

    Args:
        folder: For what it needs itself; is made.
        root: Holds the bucket's directory.

    Yields:
        Its sites: `plain`, `tls`, `latency`, `distant`, `counted`.

    Raises:
        ClusterError: It is not installed and this user cannot install it; says what to install.
    """
    packages.ensure(NEEDS)
    folder.mkdir()
    held = root / BUCKET
    (folder / "keys").write_text("".join(lines(files_below(held))))
    _write_certificates(folder)
    ports = {name: real_servers.free_port() for name in SITES}
    _configure(folder, root, ports)
    environ = {"PATH": f"{os.environ['PATH']}:{SYSTEM}"}
    command = ["nginx", "-p", f"{folder}/", "-c", "nginx.conf"]
    with real_servers.running(command, ports["plain"], folder / "log", **environ):
        yield _sites(folder, held, ports)


def sent_of_objects(folder: Path) -> int:
    """Bytes of objects that the site `counted` has sent so far, listings left out.

    Args:
        folder: That of `nginx`.
    """
    lines = (line.split() for line in (folder / COUNTED_LOG).read_text().splitlines())
    return sum(int(count) for count, arguments in lines if arguments == "-")


def nginx_version() -> str:
    """As it says itself."""
    path = f"{os.environ['PATH']}:{SYSTEM}"
    done = subprocess.run(
        [shutil.which("nginx", path=path) or "nginx", "-v"], capture_output=True, text=True, check=True
    )
    return done.stderr.strip().rpartition(": ")[2]


def _configure(folder: Path, root: Path, ports: dict[str, int]) -> None:
    template = Template((HERE / "nginx.conf").read_text())
    named = {
        "modules": MODULES,
        "user": "user root root;" if os.geteuid() == 0 else "",  # else its workers could not read the files
        "root": str(root),
        "here": str(HERE),
        "keys": str(folder / "keys"),
        "address": ADDRESS,
        "latency_ms": str(LATENCY_MS),
        "listing_ms": str(LISTING_MS),
        "rate": str(RATE),
        **{name: str(port) for name, port in ports.items()},
    }
    (folder / "nginx.conf").write_text(template.substitute(named))
    (folder / "places.conf").write_text(PLACES)


def _write_certificates(folder: Path) -> None:
    """A CA of our own and a leaf for the host."""
    material = renew_if_needed(None, [HOST], datetime.now(UTC))
    (folder / "ca.pem").write_bytes(material.bundle)
    (folder / "certificate.pem").write_bytes(material.certificate)
    (folder / "key.pem").write_bytes(material.key)


def _sites(folder: Path, held: Path, ports: dict[str, int]) -> dict[str, Site]:
    authority = str(folder / "ca.pem")
    # Go's and Rust's clients read the one, Amazon's for Python the other.
    trusting = {**KEYS, "SSL_CERT_FILE": authority, "AWS_CA_BUNDLE": authority}
    plain = f"http://{ADDRESS}:{ports['plain']}"
    tls = f"https://{HOST}:{ports['tls']}"
    latency = f"http://{ADDRESS}:{ports['latency']}"
    distant, counted = (f"http://{ADDRESS}:{ports[name]}" for name in ("distant", "counted"))
    slow = f"{LATENCY_MS} ms to the first byte, {RATE} MiB/s a connection"
    return {
        "plain": Site("plain", "nginx, canned listing", plain, held, KEYS),
        "tls": Site("tls", "nginx, TLS, canned listing", tls, held, trusting),
        "latency": Site("latency", f"nginx, {slow}, canned listing", latency, held, KEYS),
        "distant": Site(
            "distant", f"nginx, {slow}, canned listing, {LISTING_MS} ms a page", distant, held, KEYS
        ),
        "counted": Site("counted", f"nginx, {slow}, canned listing, counted", counted, held, KEYS),
    }
