"""What site files say, wherever they are."""

import pytest

from podferry.contract.errors import InvalidSpec
from podferry.storage.hadoop.configuration import hadoop_configuration, name_nodes


def site(**properties):
    rows = "".join(
        f"<property><name>{key}</name> <value> {value} </value></property>"
        for key, value in properties.items()
    )
    return f"<?xml version='1.0'?><!-- ours --><configuration>{rows}</configuration>"


def test_hdfs_site_wins_and_a_secret_replaces_files(tmp_path):
    (tmp_path / "core-site.xml").write_text(site(a="core", b="core"))
    (tmp_path / "hdfs-site.xml").write_text(site(b="hdfs", c="hdfs"))
    of_directory = {"HADOOP_CONF_DIR": str(tmp_path)}
    assert hadoop_configuration(of_directory) == {"a": "core", "b": "hdfs", "c": "hdfs"}
    secret = {**of_directory, "hdfs-site.xml": site(b="secret")}
    assert hadoop_configuration(secret) == {"a": "core", "b": "secret"}
    assert hadoop_configuration({}) == {}


def test_the_directory_of_hadoop_home(tmp_path):
    (tmp_path / "etc/hadoop").mkdir(parents=True)
    (tmp_path / "etc/hadoop/core-site.xml").write_text(site(a="1"))
    assert hadoop_configuration({"HADOOP_HOME": str(tmp_path)}) == {"a": "1"}


@pytest.mark.parametrize(
    ("credentials", "problem"),
    [
        ({"HADOOP_CONF_DIR": "/none/here"}, "no directory HADOOP_CONF_DIR.*/none/here"),
        ({"hdfs-site.xml": "<configuration>"}, "hdfs-site.xml is not XML"),
    ],
)
def test_what_cannot_be_read_is_named(credentials, problem):
    with pytest.raises(InvalidSpec, match=problem):
        hadoop_configuration(credentials)


def test_the_name_nodes_of_a_nameservice():
    found = {
        "dfs.ha.namenodes.one": "nn1, nn2,nn3",
        "dfs.namenode.rpc-address.one.nn1": "a:8020",
        "dfs.namenode.rpc-address.one.nn2": "b:8020",
    }
    assert name_nodes(found, "one", "dfs.namenode.rpc-address") == ["a:8020", "b:8020"]
    assert name_nodes(found, "two", "dfs.namenode.rpc-address") == []
