"""Hadoop's exceptions, by their Java class, in the error tree: what is wrong, measured, and the remedy.

The NameNode sends the class and the message of its exception over both protocols. A few messages are read,
because their classes have several meanings.
"""

from __future__ import annotations

from podferry.contract.errors import AccessDenied, Corrupt, FerryError, InvalidSpec, Problem, Unavailable
from podferry.storage.errors.rules import Rule
from podferry.storage.errors.translate import StoreLocation, store_error

KIND_BY_CLASS = {
    **dict.fromkeys(("FileNotFoundException", "PathNotFoundException"), "missing"),
    **dict.fromkeys(("FileAlreadyExistsException", "AlreadyBeingCreatedException"), "exists"),
    **dict.fromkeys(("InvalidPathException", "PathComponentTooLongException"), "name"),
    "IllegalArgumentException": "name",
    "ParentNotDirectoryException": "parent",
    **dict.fromkeys(("AccessControlException", "AuthorizationException"), "denied"),
    "StandbyException": "standby",
    **dict.fromkeys(("SafeModeException", "RetriableException"), "safe mode"),
    **dict.fromkeys(("NSQuotaExceededException", "DSQuotaExceededException"), "quota"),
    **dict.fromkeys(("QuotaByStorageTypeExceededException", "MaxDirectoryItemsExceededException"), "quota"),
    **dict.fromkeys(("SecretManager$InvalidToken", "InvalidToken"), "token"),
    **dict.fromkeys(("BlockMissingException", "CannotObtainBlockLengthException"), "no data node"),
    "ChecksumException": "damaged",
    "UnsupportedOperationException": "unsupported",
    "RpcNoSuchProtocolException": "not hdfs",
}
"""By the name of the class without its package."""
NOT_A_DIRECTORY = "is not a directory"
"""An `AccessControlException` with this says that a part of the path is a file."""
KIND_BY_TEXT = {
    "SIMPLE authentication is not enabled": "kerberos",
    "SecretManager$InvalidToken": "token",  # within a SecurityException
    "out of the range": "range",  # an IOException of WebHDFS
    "could only be written to 0 of the": "no room",  # an IOException: no DataNode has room, or can be reached
}

RULES = {
    "denied": Rule(
        AccessDenied,
        "HDFS denies access to {}",
        "Grant the user that permission (`hdfs dfs -chmod` or `-setfacl`), or set HADOOP_USER_NAME to one "
        "who has it",
    ),
    "parent": Rule(
        InvalidSpec, "a part of the path {} is a file", "Choose another name, or remove that file"
    ),
    "standby": Rule(
        Unavailable,  # a failover makes it active
        "the NameNode of {} is in standby",
        "Name the nameservice instead of one NameNode, with HADOOP_CONF_DIR or the keys core-site.xml and "
        "hdfs-site.xml of the Secret; requests are retried until then",
    ),
    "safe mode": Rule(
        Unavailable,
        "the NameNode of {} is in safe mode",
        "Wait until its DataNodes have reported, or run `hdfs dfsadmin -safemode leave`; requests are "
        "retried until then",
    ),
    "quota": Rule(
        Unavailable,  # like a full disk
        "the quota for {} is exceeded",
        "Remove files there, or raise it: `hdfs dfsadmin -setSpaceQuota` or `-setQuota`",
    ),
    "no room": Rule(
        Unavailable,
        "no DataNode takes the blocks of {}",
        "Free space on the DataNodes, or check that this machine reaches them; in a pod, "
        "dfs.client.use.datanode.hostname in hdfs-site.xml may be needed",
    ),
    "no data node": Rule(
        Unavailable,
        "no DataNode gives a block of {}",
        "Check that this machine reaches the DataNodes (in a pod, dfs.client.use.datanode.hostname in "
        "hdfs-site.xml may be needed), and `hdfs fsck`",
    ),
    "closed": Rule(
        Unavailable,  # it may be restarting
        "the server for {} closes the connection without a response",
        "Check that the port is that of RPC (8020 or 9000), not of HTTP; a cluster with Kerberos needs "
        "hadoop.security.authentication=kerberos in core-site.xml",
    ),
    "kerberos": Rule(
        InvalidSpec,
        "HDFS requires Kerberos for {}",
        "Set hadoop.security.authentication to kerberos in core-site.xml, which HADOOP_CONF_DIR or the "
        "Secret has, and give a ticket or a keytab",
    ),
    "kerberos web": Rule(
        InvalidSpec,
        "the server for {} requires Kerberos by HTTP (SPNEGO)",
        "Use hdfs:// with a ticket, or set WEBHDFS_DELEGATION_TOKEN (`hdfs fetchdt`)",
    ),
    "ticket": Rule(
        AccessDenied,
        "there is no valid Kerberos ticket for {}",
        "Run `kinit`, or set HDFS_PRINCIPAL and HDFS_KEYTAB; check KRB5_CONFIG and the clock",
    ),
    "kerberos library": Rule(
        InvalidSpec,
        "the library of Kerberos for {} is not installed",
        "Install it: `apt-get install libgssapi-krb5-2` or `yum install krb5-libs`",
    ),
    "token": Rule(
        AccessDenied,
        "HDFS rejects the delegation token for {}",
        "Get a new one: it has expired, was cancelled, or is another cluster's",
    ),
    "endless": Rule(Corrupt, "the listing of {} has no end", "Name a directory further down"),
    "no address": Rule(
        Unavailable,  # name resolution fails for a while, too
        "the host of {} has no address",
        "Check its name and port; if it is a nameservice, set HADOOP_CONF_DIR to a directory whose "
        "hdfs-site.xml has it, or store core-site.xml and hdfs-site.xml in the Secret",
    ),
    "nameservice": Rule(
        InvalidSpec,
        "the nameservice of {} is unknown",
        "Set HADOOP_CONF_DIR to a directory whose hdfs-site.xml has it, or store core-site.xml and "
        "hdfs-site.xml in the Secret; for a single NameNode, write its port",
    ),
    "not hdfs": Rule(
        InvalidSpec,
        "the server for {} does not respond as a NameNode",
        "Check the port: hdfs:// takes that of RPC (8020 or 9000), webhdfs:// that of HTTP (9870)",
    ),
}


def java_error(location: StoreLocation, name: str, java_class: str, message: str) -> FerryError:
    """The error for an exception of Hadoop.

    Args:
        location: Of the store.
        name: Of the file, relative to the store.
        java_class: With or without its package.
        message: With or without Java's stack trace.
    """
    first = message.strip().partition("\n")[0].strip()
    short = java_class.rpartition(".")[2].rpartition("$")[2] or java_class
    kind = KIND_BY_CLASS.get(java_class.rpartition(".")[2]) or KIND_BY_CLASS.get(short, "unreachable")
    if NOT_A_DIRECTORY in first and kind == "denied":
        kind = "missing"
    kind = next((found for text, found in KIND_BY_TEXT.items() if text in first), kind)
    return hadoop_error(kind, location, name, f"{short}: {first[:300]}" if first else short)


def hadoop_error(kind: str, location: StoreLocation, name: str, evidence: str = "") -> FerryError:
    """The error of a kind: of Hadoop's own, or of all stores."""
    if kind not in RULES:
        return store_error(kind, location, name, evidence)
    rule = RULES[kind]
    subject = str(location.uri / name) if name else str(location.uri)
    measured = "; ".join(part for part in (evidence, location.address) if part)
    return rule.error(Problem(rule.sentence.format(subject), measured, rule.remedy))
