"""`webhdfs://` and, with TLS, `swebhdfs://`: one NameNode, or a nameservice of the configuration."""

from __future__ import annotations

import getpass
from collections.abc import AsyncIterator, Mapping
from contextlib import suppress

from msgspec.structs import replace

from podferry.contract.errors import FerryError, InvalidSpec
from podferry.contract.manifest import Entry
from podferry.contract.uri import Uri
from podferry.storage.credentials.sources import variable_names
from podferry.storage.errors.translate import store_location
from podferry.storage.hadoop.configuration import hadoop_configuration, name_nodes
from podferry.storage.hadoop.errors import hadoop_error
from podferry.storage.hadoop.store import HadoopStore
from podferry.storage.request_builder import RequestBuilder, request_address
from podferry.storage.store import StoreConfig
from podferry.storage.timeouts_and_limits import LIMITS, Limits
from podferry.storage.webhdfs.client import WebHdfsAccess, WebHdfsClient
from podferry.storage.webhdfs.engine import WEBHDFS
from podferry.storage.webhdfs.files import WebHdfsFiles
from podferry.storage.webhdfs.get_requests import DataNodeRequests

HTTP_SCHEMES = {"webhdfs": "http", "swebhdfs": "https"}
PORTS = {"http": 9870, "https": 9871}
"""Of a NameNode, where a URI has none. Source: hdfs-default.xml of Hadoop 3."""
CREDENTIALS = ("HADOOP_", "WEBHDFS_", "core-site.xml", "hdfs-site.xml")


class WebHdfsStore(HadoopStore):
    """A directory of HDFS as a store; see `HadoopStore`."""

    refused_characters = WEBHDFS.schemes[0].refused_characters

    def __init__(self, uri: Uri, config: StoreConfig, limits: Limits = LIMITS) -> None:
        """Read the configuration.

        Raises:
            InvalidSpec: The configuration is malformed, or the URI has a user.
        """
        if "@" in uri.bucket:
            raise InvalidSpec.of("a URI of HDFS must not have a user", str(uri), "Set HADOOP_USER_NAME")
        credentials = config.credentials
        bases = _bases(uri, hadoop_configuration(credentials))
        names = variable_names(credentials, *CREDENTIALS)
        location = store_location(uri, bases[0], names, config.network)
        root = replace(location, uri=uri.root)
        access = WebHdfsAccess(root, bases, _identity(credentials), config.network, limits)
        self._client = WebHdfsClient(access)
        self._builder: DataNodeRequests | None = None
        if (address := request_address(bases[0], config.network)) is not None:
            self._builder = DataNodeRequests(uri.key, address, self._redirected, config.network)
        super().__init__(location, WebHdfsFiles(self._client, root, limits), limits)

    @property
    def request_builder(self) -> RequestBuilder | None:
        """See `Store.request_builder`."""
        return self._builder

    async def entries(self, prefix: str = "") -> AsyncIterator[Entry]:
        """See `Store.entries`. The NameNode also says which DataNode serves the files."""
        asked = self._builder is None
        async for entry in super().entries(prefix):
            if not asked and entry.size and self._builder is not None:
                asked = True
                with suppress(FerryError):  # reading it says what is wrong
                    await self._builder.discover(entry)
            yield entry

    async def _redirected(self, path: str) -> str:
        return await self._client.redirection("GET", path, "OPEN")


def _bases(uri: Uri, configuration: Mapping[str, str]) -> tuple[str, ...]:
    """URLs of the NameNodes."""
    scheme = HTTP_SCHEMES[uri.scheme]
    if found := name_nodes(configuration, uri.bucket, f"dfs.namenode.{scheme}-address"):
        return tuple(f"{scheme}://{address}" for address in found)
    if f"dfs.ha.namenodes.{uri.bucket}" in configuration:
        evidence = f"hdfs-site.xml has no dfs.namenode.{scheme}-address.{uri.bucket}.…"
        raise hadoop_error("nameservice", store_location(uri, "", (), StoreConfig().network), "", evidence)
    has_port = uri.bucket.rpartition(":")[2].isdecimal() and not uri.bucket.endswith("]")
    return (f"{scheme}://{uri.bucket}" + ("" if has_port else f":{PORTS[scheme]}"),)


def _identity(credentials: Mapping[str, str]) -> dict[str, str]:
    """The parameters that say who asks: a token alone, or a user's name."""
    if token := credentials.get("WEBHDFS_DELEGATION_TOKEN"):
        return {"delegation": token}
    return {"user.name": credentials.get("HADOOP_USER_NAME") or _own_name()}


def _own_name() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a user without a name, as in many pods
        return "podferry"
