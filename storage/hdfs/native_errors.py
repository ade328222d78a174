r"""What hdfs-native's exceptions mean. Most are a RuntimeError with the debug form of a Rust enumeration.

`RPCError("java.class.Name", "message\n\tat …")` has the NameNode's exception; the others name the variant.
"""

from __future__ import annotations

import re

from podferry.contract.errors import FerryError
from podferry.storage.errors.translate import StoreLocation, translate
from podferry.storage.hadoop.errors import hadoop_error, java_error

VARIANT = re.compile(r"\w+")
QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"')
ESCAPE = re.compile(r"\\(.)")
CONTROL = {"n": "\n", "t": "\t", "r": "\r"}
RPC_VARIANTS = ("RPCError", "FatalRPCError")
KIND_BY_VARIANT = {
    **dict.fromkeys(("GSSAPIError", "SASLError", "NoSASLMechanism"), "ticket"),
    **dict.fromkeys(("InvalidRPCResponse",), "not hdfs"),
    **dict.fromkeys(("BlocksNotFound", "DataTransferError"), "no data node"),
    **dict.fromkeys(("ChecksumError", "ErasureCodingError"), "damaged"),
    **dict.fromkeys(("InvalidPath",), "name"),
    "UnsupportedErasureCodingPolicy": "unsupported",
}
KIND_BY_OS_TEXT = {"failed to lookup address": "no address", "RPC listener disconnected": "closed"}
NO_NAME_NODES = "No NameNode hosts found"
NO_GSSAPI = "Failed to load libgssapi_krb"
KIND_BY_TYPE = {
    FileNotFoundError: "missing",
    FileExistsError: "exists",
    IsADirectoryError: "missing",
    NotImplementedError: "unsupported",
}


def native_error(error: BaseException, location: StoreLocation, name: str) -> FerryError:
    """The error for what a call of hdfs-native raised."""
    message = str(error.args[0]) if error.args else ""
    kind = next((kind for each, kind in KIND_BY_TYPE.items() if isinstance(error, each)), "")
    if kind:
        return hadoop_error(kind, location, name, message.partition("\n")[0][:300])
    if isinstance(error, OSError):
        kind = next((kind for text, kind in KIND_BY_OS_TEXT.items() if text in message), "unreachable")
        return hadoop_error(kind, location, name, message[:300] or type(error).__name__)
    if not isinstance(error, RuntimeError):
        return translate(error, location, name)
    found = VARIANT.match(message)
    variant, texts = found[0] if found else "", [_plain(text) for text in QUOTED.findall(message)]
    if variant in RPC_VARIANTS and len(texts) > 1:
        return java_error(location, name, texts[0], texts[1])
    kind = KIND_BY_VARIANT.get(variant, "unreachable")
    if NO_NAME_NODES in message:
        kind = "nameservice"
    elif NO_GSSAPI in message:
        kind = "kerberos library"
    return hadoop_error(kind, location, name, _plain(message).partition("\n")[0][:300])


def _plain(text: str) -> str:
    """Without Rust's escapes."""
    return ESCAPE.sub(lambda match: CONTROL.get(match[1], match[1]), text)
