"""Hadoop's exceptions in the error tree; their texts are those of Hadoop 3.4.1."""

import pytest

from podferry.contract.errors import AccessDenied, AlreadyExists, Corrupt, InvalidSpec, NotFound, Unavailable
from podferry.contract.uri import parse_uri
from podferry.storage.errors.translate import StoreLocation
from podferry.storage.hadoop.errors import KIND_BY_CLASS, RULES, hadoop_error, java_error

LOCATION = StoreLocation(parse_uri("hdfs://node:8020/data"))
IO = "java.io.IOException"


@pytest.mark.parametrize(
    ("java_class", "message", "kind", "text"),
    [
        ("java.io.FileNotFoundException", "File does not exist: /a", NotFound, "no object"),
        ("org.apache.hadoop.fs.FileAlreadyExistsException", "/a exists", AlreadyExists, "already exists"),
        (
            "org.apache.hadoop.security.AccessControlException",
            'Permission denied: user=nobody, access=WRITE, inode="/a":root:supergroup:drwxr-xr-x\n\tat org.x',
            AccessDenied,
            'user=nobody, access=WRITE, inode="/a":root:supergroup:drwxr-xr-x;',
        ),
        ("org.apache.hadoop.security.AccessControlException", "/a (is not a directory)", NotFound, "/a"),
        (
            "org.apache.hadoop.security.AccessControlException",
            "SIMPLE authentication is not enabled.  Available:[TOKEN, KERBEROS]",
            InvalidSpec,
            "requires Kerberos",
        ),
        (
            "org.apache.hadoop.ipc.StandbyException",
            "Operation category READ is not supported in state standby",
            Unavailable,
            "in standby",
        ),
        (
            "org.apache.hadoop.hdfs.server.namenode.SafeModeException",
            "Cannot create file/a. Name node is in safe mode.",
            Unavailable,
            "-safemode leave",
        ),
        (
            "org.apache.hadoop.hdfs.protocol.DSQuotaExceededException",
            "The DiskSpace quota of /a is exceeded: quota = 1048576 B = 1 MB",
            Unavailable,
            "quota = 1048576 B",
        ),
        (
            "org.apache.hadoop.hdfs.protocol.FSLimitException$PathComponentTooLongException",
            "The maximum path component name limit of a in directory / is exceeded: limit=255 length=256",
            InvalidSpec,
            "limit=255",
        ),
        (IO, "File /a could only be written to 0 of the 1 minReplication nodes.", Unavailable, "no DataNode"),
        (IO, "Offset=10 out of the range [0, 10); OPEN, path=/a", Corrupt, "requested"),
        (
            "java.lang.SecurityException",
            "Failed: org.apache.hadoop.security.token.SecretManager$InvalidToken: token is expired",
            AccessDenied,
            "new one",
        ),
        (IO, "something else", Unavailable, "something else"),
        (
            "org.apache.hadoop.security.token.SecretManager$InvalidToken",
            "expired",
            AccessDenied,
            "fetchdt|new one",
        ),
        ("FileNotFoundException", "", NotFound, "FileNotFoundException"),
    ],
)
def test_an_exception_is_named(java_class, message, kind, text):
    error = java_error(LOCATION, "a", java_class, message)
    assert type(error) is kind
    assert any(each in str(error) for each in text.split("|"))
    assert "hdfs://node:8020/data/a" in str(error)
    assert "\tat " not in str(error)


@pytest.mark.parametrize("kind", [*RULES, *KIND_BY_CLASS.values()])
def test_every_kind_has_a_remedy(kind):
    (problem,) = hadoop_error(kind, LOCATION, "a", "measured").problems
    assert problem.remedy
    assert "measured" in problem.measured
