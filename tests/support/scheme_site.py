"""Starts the server of a scheme, as the process of a user reaches it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from importlib import import_module  # what only these tests need is not installed for the others
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from podferry.contract.uri import Uri, parse_uri
from podferry.storage.engines import BUILT_IN
from podferry.storage.factory import open_store
from podferry.storage.in_parallel import for_each_limited
from podferry.storage.network.settings import read_network
from podferry.storage.store import Store, StoreConfig
from tests.support.cut_relay import CutRelay, cut_relay
from tests.support.real_servers import AZURITE_ACCOUNT, AZURITE_KEY, free_ports

SCHEMES = [
    scheme
    for engine in BUILT_IN
    for scheme in engine.schemes
    if scheme.tested_on and scheme.names[0] not in {"memory", "pvc"}  # a claim needs a cluster: tests/e2e
]
"""What is declared of each scheme that has a server."""
LOGIN = {"USERNAME": "user", "PASSWORD": "password"}
HADOOP = ("hdfs", "webhdfs")
DATA_HTTP = "dfs.datanode.http.address"
BUCKETS = {
    "s3": ("versitygw", {"AWS_ACCESS_KEY_ID": "key-of-tests", "AWS_SECRET_ACCESS_KEY": "secret-of-tests"}),
    "bos": (
        "bos",
        {
            "BOS_ACCESS_KEY_ID": "key-of-tests",
            "BOS_SECRET_ACCESS_KEY": "secret-of-tests",
            "BOS_REGION": "gz",
        },
    ),
    "az": (
        "azurite",
        {"AZURE_STORAGE_ACCOUNT_NAME": AZURITE_ACCOUNT, "AZURE_STORAGE_ACCOUNT_KEY": AZURITE_KEY},
    ),
    "gs": ("fake_gcs", {"GOOGLE_SKIP_SIGNATURE": "true"}),
}
WRITTEN = {*BUCKETS, *HADOOP, "oss", "smb"}
"""Schemes whose servers get the files by `Site.put`; the others serve the folder."""
RELAYED = "127.0.0.2"
"""Where relays listen for servers whose transfers have ports of their own: on the same ports."""
FTP_PORTS = 24
"""For transfers: of a store's 8 sessions, and of those that have just ended."""
CLIENT_OF_HDFS = """<configuration>
<property><name>dfs.client.use.datanode.hostname</name><value>true</value></property>
</configuration>
"""


class Site:
    """Starts the server of a scheme.

    Attributes:
        files: The folder that is served, or whose files are written to the server.
        variables: Of the environment that reaches it.
        endpoint: Of the service, or None.
    """

    def __init__(self, request: pytest.FixtureRequest, folder: Path, stack: ExitStack) -> None:
        self.files = folder / "files/a set"
        self.variables: dict[str, str] = {}
        self.endpoint: str | None = None
        self._request, self._folder, self._stack = request, folder, stack
        self._ports: tuple[int, ...] = ()
        self._hub_server: Any = None
        self._name_node = ""
        for path in (self.files, folder / "server"):
            path.mkdir(parents=True)
        self.files.chmod(0o777)  # servers have users of their own

    @property
    def options(self) -> list[str]:
        """Of commands."""
        return ["--endpoint", self.endpoint] if self.endpoint else []

    def open(self, uri: Uri) -> Store:
        """A store at the server."""
        network = read_network(self.variables)
        config = StoreConfig(endpoint=self.endpoint, credentials=self.variables, network=network)
        return open_store(uri, config)

    async def put(self, uri: Uri) -> None:
        """Write the files to the server, if it does not serve their folder."""
        if uri.scheme not in WRITTEN:
            return
        # What WebHDFS writes goes where a relay may not be yet.
        store = self.open(Uri("hdfs", self._name_node, uri.key) if uri.scheme == "webhdfs" else uri)

        async def write(path: Path) -> None:
            """Write a file."""
            await store.write(str(path.relative_to(self.files)), path.read_bytes())

        await for_each_limited([path for path in self.files.rglob("*") if path.is_file()], write, 8)
        await store.close()

    @asynccontextmanager
    async def cut(
        self, uri: Uri, after: int, cuts: int, *, upward: bool = False, listing: bool = False, host: str = ""
    ) -> AsyncIterator[tuple[Uri, CutRelay]]:
        """The directory behind a relay, where variables and endpoint now lead too; see `cut_relay`.

        `listing` is for a relay of what lists, where another server has the data; `host` is where it listens.
        """
        server = urlsplit(self.endpoint or "").netloc or uri.bucket
        if self._hub_server is not None:
            server = urlsplit(self._hub_server.url if listing else self._hub_server.storage).netloc
        host = host or (RELAYED if self._ports else "127.0.0.1")
        direct = self.endpoint, dict(self.variables)
        async with cut_relay(server, after, cuts, upward=upward, host=host, ports=self._ports) as relay:
            yield self._behind(uri, server, relay.address), relay
        self.endpoint, self.variables = direct

    def _behind(self, uri: Uri, server: str, address: str) -> Uri:
        if self.endpoint:
            self.endpoint = self.endpoint.replace(server, address)
            return uri
        if self._hub_server is not None:
            if server in self.variables["HF_ENDPOINT"]:
                self.variables |= {"HF_ENDPOINT": f"http://{address}"}
            else:  # the Hub sends clients there for each large file
                self._hub_server.storage = f"http://{address}"
            return uri
        if uri.scheme == "sftp":
            host, _, port = address.rpartition(":")
            known = self.variables["SFTP_KNOWN_HOSTS"].partition(" ")[2]
            self.variables |= {"SFTP_KNOWN_HOSTS": f"[{host.strip('[]')}]:{port} {known}"}
        if uri.scheme in HADOOP:
            for name in ("core-site.xml", "hdfs-site.xml"):
                (self._folder / "server" / name).write_text(CLIENT_OF_HDFS)
            self.variables |= {"HADOOP_CONF_DIR": str(self._folder / "server")}
        return Uri(uri.scheme, address, uri.key)

    def uri(self, scheme: str) -> Uri:
        """A directory at the server that has the file."""
        if scheme in BUCKETS:
            fixture, variables = BUCKETS[scheme]
            self.variables = dict(variables)
            self.endpoint = self._request.getfixturevalue(fixture)
            return Uri(scheme, "bucket", f"{self._folder.name}/a set")
        own = {"oss": self._oss, "smb": self._share, "sftp": self._sftp}
        if scheme in own:
            return own[scheme]()
        if scheme in HADOOP:
            return self._hdfs(scheme)
        if scheme in {"ftp", "ftps"}:
            return self._ftp(scheme)
        files = self._folder / "files"
        if scheme == "file":
            return parse_uri(str(files / "a set"))
        path = "tests/set/a set" if scheme == "hf" else "a set"
        return Uri(scheme, self._stack.enter_context(self._server(scheme, files)), path)

    def _oss(self) -> Uri:
        served = self._stack.enter_context(import_module("tests.support.oss.server").serving())
        self.endpoint = served.endpoint
        self.variables = {"akId": "key-of-tests", "akSecret": "secret-of-tests", "OSS_REGION": "cn-hangzhou"}
        return Uri("oss", "bucket", "a set")

    def _hdfs(self, scheme: str) -> Uri:
        found = self._request.getfixturevalue("hadoop")
        served, self._name_node = scheme == "hdfs", found.address
        self._ports = (found.data_port if served else int(found.properties[DATA_HTTP].rpartition(":")[2]),)
        return Uri(scheme, found.address if served else found.web, f"{self._folder.name}/a set")

    def _sftp(self) -> Uri:
        serving = import_module("tests.support.openssh").sshd(self._folder / "files", self._folder / "server")
        server = self._stack.enter_context(serving)
        self.variables = server.credentials
        return Uri("sftp", server.address, "srv/files/a set")

    def _ftp(self, scheme: str) -> Uri:
        server, folder = import_module("tests.support.vsftpd"), self._folder / "server"
        certificate, key = import_module("tests.support.rclone").certificate_for_loopback(folder)
        options = server.tls_options(certificate, key) if scheme == "ftps" else ()
        self.variables = {f"FTP_{name}": value for name, value in LOGIN.items()}
        self.variables |= {"REQUESTS_CA_BUNDLE": str(certificate)}
        self._ports = free_ports(FTP_PORTS)
        passive = f"pasv_min_port={self._ports[0]}", f"pasv_max_port={self._ports[-1]}"
        serving = server.vsftpd(self._folder / "files", folder, *options, *passive)
        return Uri(scheme, self._stack.enter_context(serving), "a set")

    def _share(self) -> Uri:
        served = import_module("tests.support.samba")
        self.variables = dict(served.KEYS)
        for name in ("share", "samba"):
            (self._folder / name).mkdir()
        server = self._stack.enter_context(served.samba(self._folder / "share", self._folder / "samba"))
        return Uri("smb", server.address, f"{served.SHARE}/a set")

    def _server(self, scheme: str, files: Path):
        rclone, log = import_module("tests.support.rclone"), self._folder / "server/log"
        if scheme == "hf":
            return self._hub(files / "a set")
        if scheme == "webdav":
            dav = import_module("tests.support.webdav_servers")
            self.variables = dict(dav.KEYS)
            return dav.rclone_webdav(files, log.parent)
        if scheme == "http":
            return rclone.rclone(files, "http", log)
        certificate, key = rclone.certificate_for_loopback(log.parent)
        self.variables = {"SSL_CERT_FILE": str(certificate)}
        return rclone.rclone(files, "http", log, "--cert", str(certificate), "--key", str(key))

    @contextmanager
    def _hub(self, files: Path):
        hub = import_module("tests.support.hub_server")
        with hub.serving({"datasets/tests/set": hub.repository_of(files.parent)}) as server:
            self.variables, self._hub_server = {"HF_ENDPOINT": server.url}, server
            yield "datasets"
