"""`hdfs://`: one NameNode, or a nameservice with several; with Kerberos where the configuration says so."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import hdfs_native
from msgspec.structs import replace

from podferry.contract.errors import InvalidSpec
from podferry.contract.uri import Uri
from podferry.storage.credentials.sources import variable_names
from podferry.storage.errors.translate import StoreLocation
from podferry.storage.hadoop.configuration import hadoop_configuration, name_nodes
from podferry.storage.hadoop.store import HadoopStore
from podferry.storage.hdfs.engine import HDFS
from podferry.storage.hdfs.native_files import NativeFiles
from podferry.storage.hdfs.process_identity import assume_identity
from podferry.storage.store import StoreConfig
from podferry.storage.timeouts_and_limits import LIMITS, Limits

RPC_PORT = 8020
"""Of a NameNode, where a URI has none and names no nameservice. Source: Hadoop's `HdfsClientConfigKeys`."""
RPC_ADDRESS = "dfs.namenode.rpc-address"
NO_DIRECTORY = "/nonexistent"
"""The configuration is given as values: hdfs-native would add the environment's to a Secret's."""
ONE_NODE_ATTEMPTS = "2"
"""Nobody takes over for a single NameNode; by default, one that is not there takes three minutes."""
CREDENTIALS = ("HADOOP_", "HDFS_", "KRB5", "core-site.xml", "hdfs-site.xml", "keytab", "krb5.conf")


class HdfsStore(HadoopStore):
    """A directory of HDFS as a store; see `HadoopStore`."""

    refused_characters = HDFS.schemes[0].refused_characters

    def __init__(self, uri: Uri, config: StoreConfig, limits: Limits = LIMITS) -> None:
        """Read the configuration.

        Raises:
            InvalidSpec: The configuration is malformed, the URI has a user, or another store of this process
                is another user.
        """
        if "@" in uri.bucket:
            raise InvalidSpec.of("a URI of HDFS must not have a user", str(uri), "Set HADOOP_USER_NAME")
        credentials = config.credentials
        found = hadoop_configuration(credentials)
        assume_identity(credentials)
        location = StoreLocation(uri, "", variable_names(credentials, *CREDENTIALS))
        nodes = name_nodes(found, uri.bucket, RPC_ADDRESS)
        settings = {
            "dfs.client.failover.max.attempts": str(limits.retries + 1) if nodes else ONE_NODE_ATTEMPTS
        }
        connect = partial(_connect, _address(uri, found), {**settings, **found}, credentials)
        root = replace(location, uri=uri.root)
        replication = found.get("dfs.replication", "")
        number = int(replication) if replication.isdecimal() else None
        super().__init__(location, NativeFiles(root, connect, limits, number), limits)


def _address(uri: Uri, configuration: Mapping[str, str]) -> str:
    known = uri.scheme != "hdfs" or f"dfs.ha.namenodes.{uri.bucket}" in configuration
    has_port = uri.bucket.rpartition(":")[2].isdecimal() and not uri.bucket.endswith("]")
    return f"{uri.scheme}://{uri.bucket}" + ("" if known or has_port else f":{RPC_PORT}")


def _connect(url: str, configuration: dict[str, str], credentials: Mapping[str, str]) -> hdfs_native.Client:
    principal, keytab = credentials.get("HDFS_PRINCIPAL"), credentials.get("HDFS_KEYTAB")
    keytab = keytab or credentials.get("keytab")
    if principal is None and keytab is None:
        return hdfs_native.Client(url, configuration, NO_DIRECTORY)
    return hdfs_native.Client(
        url, configuration, NO_DIRECTORY, kerberos_principal=principal, kerberos_keytab=keytab
    )
