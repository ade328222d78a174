"""What hdfs-native's exceptions mean; their texts are those of hdfs-native 0.14."""

import pytest

from podferry.contract.errors import (
    AccessDenied,
    AlreadyExists,
    InvalidSpec,
    NotFound,
    Unavailable,
)
from podferry.contract.uri import parse_uri
from podferry.storage.errors.translate import StoreLocation
from podferry.storage.hdfs.native_errors import native_error

LOCATION = StoreLocation(parse_uri("hdfs://node:8020/data"))
RPC = 'RPCError("org.apache.hadoop.{}", "{}\\n\\tat org.apache.X.y(X.java:1)\\n")'


@pytest.mark.parametrize(
    ("error", "kind", "text"),
    [
        (FileNotFoundError("File does not exist: /a\n\tat org.x"), NotFound, "File does not exist: /a;"),
        (FileExistsError("/a"), AlreadyExists, "already exists"),
        (IsADirectoryError("/a"), NotFound, "no object"),
        (OSError("Connection refused (os error 111)"), Unavailable, "Connection refused"),
        (
            OSError("failed to lookup address information: Name or service not known"),
            Unavailable,
            "nameservice",
        ),
        (OSError("RPC listener disconnected"), Unavailable, "Kerberos needs"),
        (RuntimeError('InvalidArgument("No NameNode hosts found")'), InvalidSpec, "nameservice"),
        (
            RuntimeError(
                RPC.format(
                    "security.AccessControlException", 'Permission denied: user=u, inode=\\"/\\":root:g:drwx'
                )
            ),
            AccessDenied,
            'user=u, inode="/":root:g:drwx;',
        ),
        (RuntimeError(RPC.format("ipc.StandbyException", "in state standby")), Unavailable, "in standby"),
        (
            RuntimeError("Fatal" + RPC.format("ipc.RpcNoSuchProtocolException", "?")),
            InvalidSpec,
            "a NameNode",
        ),
        (RuntimeError('DataTransferError("All DataNodes failed: []")'), Unavailable, "no DataNode gives"),
        (RuntimeError("ChecksumError"), Unavailable, "damaged"),
        (
            RuntimeError('GSSAPIError(GssMajorCodes(GSS_S_FAILURE), 100001, "No credentials")'),
            AccessDenied,
            "No credentials",
        ),
        (RuntimeError('OperationFailed("Failed to load libgssapi_krb")'), InvalidSpec, "libgssapi-krb5-2"),
        (RuntimeError('OperationFailed("other")'), Unavailable, "other"),
        (NotImplementedError("x"), InvalidSpec, "does not support"),
        (RuntimeError(), Unavailable, "hdfs://node:8020/data/a"),
    ],
)
def test_an_exception_is_named(error, kind, text):
    found = native_error(error, LOCATION, "a")
    assert type(found) is kind
    assert text in str(found)
    assert "X.java" not in str(found)
