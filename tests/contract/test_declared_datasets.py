import pytest

from podferry.contract.declared_datasets import resolve_dataset
from podferry.contract.errors import InvalidSpec

DECLARED = {"digits": "s3://data/digits", "broken": "s3:///none"}


@pytest.mark.parametrize(
    ("text", "reference"),
    [
        ("s3://b/x", "s3://b/x"),
        ("/data/x", "file:///data/x"),
        ("digits", "s3://data/digits"),
    ],
)
def test_a_uri_a_path_or_a_declared_name(text, reference):
    assert str(resolve_dataset(text, DECLARED)) == reference


@pytest.mark.parametrize(
    ("text", "declared", "words"),
    [
        ("digit", DECLARED, r"Did you mean 'digits'\? Declared: broken, digits"),
        ("other", DECLARED, "neither a URI nor a declared dataset .*Declared: broken, digits"),
        ("digits", {}, "the policy declares no datasets"),
        ("bucket/x", DECLARED, r"Did you mean s3://bucket/x\?"),
        ("s3:/b/x", DECLARED, "Did you mean s3://b/x"),
        (
            "broken",
            DECLARED,
            "the policy's dataset 'broken' is not a valid reference: the URI names no bucket",
        ),
    ],
)
def test_anything_else_is_refused_with_what_is_declared(text, declared, words):
    with pytest.raises(InvalidSpec, match=words):
        resolve_dataset(text, declared)
