"""The user of this process at HDFS: hdfs-native and the library of Kerberos read it from the environment.

So a process can be only one user there. A Secret is used alone, and its values replace the environment's.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from pathlib import Path

from podferry.contract.errors import InvalidSpec

NAMES = ("HADOOP_USER_NAME", "KRB5_CONFIG", "KRB5CCNAME")
_used: dict[str, str] = {}
"""What stores of this process have set."""


def assume_identity(credentials: Mapping[str, str]) -> None:
    """Set the variables of the process that decide which user it is.

    Raises:
        InvalidSpec: Another store of this process is another user.
    """
    wanted = {name: credentials[name] for name in NAMES if credentials.get(name)}
    if text := credentials.get("krb5.conf"):
        wanted["KRB5_CONFIG"] = _used_file(text)
    for name, value in wanted.items():
        if _used.setdefault(name, value) != value:
            what = f"two stores in HDFS need a different {name} in one process"
            remedy = "Use one user for datasets, checkpoints and outputs, or webhdfs:// for one of them"
            raise InvalidSpec.of(what, f"{_used[name]}, {value}", remedy)
        os.environ[name] = value


def _used_file(text: str) -> str:
    """A file with the configuration of Kerberos; the same one for the same text."""
    known = _used.get("KRB5_CONFIG", "")
    if known and Path(known).is_file() and Path(known).read_text(encoding="utf-8") == text:
        return known
    with tempfile.NamedTemporaryFile("w", prefix="krb5-", suffix=".conf", delete=False) as file:
        file.write(text)
    return file.name
