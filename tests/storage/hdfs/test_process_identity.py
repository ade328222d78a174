"""One process is one user of HDFS."""

import os
from pathlib import Path

import pytest

from podferry.contract.errors import InvalidSpec
from podferry.storage.hdfs import process_identity
from podferry.storage.hdfs.process_identity import NAMES, assume_identity


@pytest.fixture(autouse=True)
def unused(monkeypatch):
    monkeypatch.setattr(process_identity, "_used", {})
    for name in NAMES:
        monkeypatch.setenv(name, "before")


def test_a_secrets_user_is_the_process_s():
    assume_identity({"HADOOP_USER_NAME": "alice", "OTHER": "x"})
    assert os.environ["HADOOP_USER_NAME"] == "alice"
    assert os.environ["KRB5CCNAME"] == "before"
    assume_identity({})
    assume_identity({"HADOOP_USER_NAME": "alice"})


def test_two_users_are_refused():
    assume_identity({"HADOOP_USER_NAME": "alice"})
    with pytest.raises(InvalidSpec, match=r"different HADOOP_USER_NAME.*alice, bob.*webhdfs"):
        assume_identity({"HADOOP_USER_NAME": "bob"})
    assert os.environ["HADOOP_USER_NAME"] == "alice"


def test_the_configuration_of_kerberos_is_a_file():
    assume_identity({"krb5.conf": "[libdefaults]\n"})
    file = os.environ["KRB5_CONFIG"]
    assert Path(file).read_text() == "[libdefaults]\n"
    assume_identity({"krb5.conf": "[libdefaults]\n"})
    assert os.environ["KRB5_CONFIG"] == file
    with pytest.raises(InvalidSpec, match="KRB5_CONFIG"):
        assume_identity({"krb5.conf": "[realms]\n"})
