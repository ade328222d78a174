import pytest

from podferry.cli.cache.source import writable_source
from podferry.contract.errors import Refused


def test_a_prefix_of_a_store_can_be_changed():
    assert str(writable_source("s3://datasets/digits")) == "s3://datasets/digits"


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("s3://datasets/digits#sha256=" + "0" * 64 + "&bytes=1&files=1", "the dataset is frozen"),
        ("pvc://datasets/digits", "in the holders' pods"),
        ("https://example.org/d/", "nothing can be changed there"),
    ],
)
def test_other_sources_are_refused(source, text):
    with pytest.raises(Refused, match=text):
        writable_source(source)
