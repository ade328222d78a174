import pytest

from podferry.contract.hadoop_properties import hadoop_properties


def test_properties() -> None:
    text = """<?xml version="1.0"?><configuration>
<property><name> a </name><value> b </value><final>true</final></property>
<property><name>empty</name></property><property><name>c</name><value/></property>
</configuration>"""
    assert hadoop_properties(text) == {"a": "b", "c": ""}


def test_no_xml() -> None:
    with pytest.raises(ValueError, match="no element found"):
        hadoop_properties("")
