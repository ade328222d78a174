"""Hadoop's configuration: `core-site.xml` and `hdfs-site.xml`, of a directory or of a Secret."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from podferry.contract.errors import InvalidSpec
from podferry.contract.hadoop_properties import hadoop_properties

SITE_FILES = ("core-site.xml", "hdfs-site.xml")
"""The later one wins, as in Hadoop."""


def hadoop_configuration(credentials: Mapping[str, str]) -> dict[str, str]:
    """The properties of the site files.

    Args:
        credentials: `HADOOP_CONF_DIR`, or `HADOOP_HOME`, has the files; keys with their names, as a Secret
            may have, replace those.

    Raises:
        InvalidSpec: A file cannot be read, or is no XML.
    """
    found: dict[str, str] = {}
    for name in SITE_FILES:
        text = credentials.get(name) or _text(_directory(credentials), name)
        if text:
            found |= _properties(name, text)
    return found


def _directory(credentials: Mapping[str, str]) -> Path | None:
    if given := credentials.get("HADOOP_CONF_DIR"):
        return Path(given)
    home = credentials.get("HADOOP_HOME")
    return Path(home) / "etc/hadoop" if home else None


def _text(directory: Path | None, name: str) -> str:
    if directory is None:
        return ""
    file = directory / name
    try:
        return file.read_text(encoding="utf-8")
    except FileNotFoundError as error:
        if directory.is_dir():
            return ""
        remedy = "Correct HADOOP_CONF_DIR"
        raise InvalidSpec.of("there is no directory HADOOP_CONF_DIR", str(directory), remedy) from error
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidSpec.of(f"{file} cannot be read", type(error).__name__, "Correct it") from error


def _properties(name: str, text: str) -> dict[str, str]:
    try:
        return hadoop_properties(text)
    except ValueError as error:
        raise InvalidSpec.of(f"{name} is not XML", str(error), "Correct it") from error


def name_nodes(configuration: Mapping[str, str], nameservice: str, address: str) -> list[str]:
    """Addresses of a nameservice's NameNodes, such as `host:8020`, in the order of the configuration.

    Args:
        configuration: Of `hadoop_configuration`.
        nameservice: Its name.
        address: Which one: `dfs.namenode.rpc-address` or `dfs.namenode.http-address`.
    """
    ids = configuration.get(f"dfs.ha.namenodes.{nameservice}", "")
    keys = [f"{address}.{nameservice}.{each.strip()}" for each in ids.split(",") if each.strip()]
    return [configuration[key] for key in keys if configuration.get(key)]
