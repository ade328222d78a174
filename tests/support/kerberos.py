"""A Kerberos realm of MIT's KDC on loopback, with principals and their keytabs."""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.support.real_servers import free_port, running
from tests.support.server_binaries import installed, libraries

REALM = "PODFERRY.TEST"


@dataclass(frozen=True, slots=True)
class Realm:
    """A running realm.

    Attributes:
        folder: Has `krb5.conf`, and `NAME.keytab` of each principal: the part before its slash.
    """

    folder: Path

    @property
    def configuration(self) -> Path:
        """The clients' `krb5.conf`."""
        return self.folder / "krb5.conf"

    def keytab(self, name: str) -> Path:
        """The keys of a principal."""
        return self.folder / f"{name}.keytab"

    def ticket(self, name: str, cache: Path) -> None:
        """`kinit` by keytab into a cache."""
        words = ["-k", "-t", str(self.keytab(name)), "-c", f"FILE:{cache}", f"{name}@{REALM}"]
        _run("bin/kinit", words, self.folder)


@contextlib.contextmanager
def realm(folder: Path, principals: Sequence[str]) -> Iterator[Realm]:
    """A realm with principals such as `alice` and `hdfs/localhost`."""
    port, found = free_port(), Realm(folder)
    plugins = next(_root().glob("usr/lib/*/krb5/plugins/kdb"))
    found.configuration.write_text(f"""
[libdefaults]
 default_realm = {REALM}
 dns_lookup_kdc = false
 dns_canonicalize_hostname = false
 rdns = false
 udp_preference_limit = 1
[realms]
 {REALM} = {{
  kdc = 127.0.0.1:{port}
 }}
[dbmodules]
 db_module_dir = {plugins}
""")
    (folder / "kdc.conf").write_text(f"""
[kdcdefaults]
 kdc_listen = 127.0.0.1:{port}
 kdc_tcp_listen = 127.0.0.1:{port}
[realms]
 {REALM} = {{
  database_name = {folder}/principal
  key_stash_file = {folder}/stash
  acl_file = {folder}/acl
 }}
""")
    _run("sbin/kdb5_util", ["create", "-s", "-P", "of tests", "-r", REALM], folder)
    for principal in principals:
        _run("sbin/kadmin.local", ["-r", REALM, "-q", f"addprinc -randkey {principal}"], folder)
        keytab = found.keytab(principal.partition("/")[0])
        _run("sbin/kadmin.local", ["-r", REALM, "-q", f"ktadd -k {keytab} {principal}"], folder)
    server = [str(_root() / "usr/sbin/krb5kdc"), "-n", "-r", REALM, "-P", str(folder / "pid")]
    with running(server, port, folder / "log", **_environ(folder)):
        yield found


def _root() -> Path:
    return Path(str(installed("krb5kdc")).removesuffix("/usr/sbin/krb5kdc"))


def _environ(folder: Path) -> dict[str, str]:
    files = {"KRB5_CONFIG": f"{folder}/krb5.conf", "KRB5_KDC_PROFILE": f"{folder}/kdc.conf"}
    return {**files, **libraries("krb5kdc")}


def _run(program: str, words: Sequence[str], folder: Path) -> None:
    command = [str(_root() / "usr" / program), *words]
    done = subprocess.run(
        command, env={**os.environ, **_environ(folder)}, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise RuntimeError(f"{command}: {done.returncode}\n{done.stdout}\n{done.stderr}")
