import pytest

from podferry.contract.annotations import read_annotations
from podferry.contract.claims import claim_path_problem, claims_of, hint_for
from podferry.contract.uri import parse_uri


def spec(**annotations: str):
    found = read_annotations(
        {f"podferry.io/{key.replace('_', '-')}": value for key, value in annotations.items()}
    )
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("annotations", "claims"),
    [
        ({"dataset": "pvc://data/digits"}, {"data": False}),
        ({"dataset": "pvc://data", "checkpoints": "pvc://results/a"}, {"data": False, "results": True}),
        ({"dataset": "pvc://one/data", "checkpoints": "pvc://one/results"}, {"one": True}),
        ({"outputs": "pvc://results"}, {"results": True}),
        ({"checkpoints": "s3://b/c", "restore": "pvc://old/lineage"}, {"old": False}),
        ({"dataset": "pvc://data", "mode": "share"}, {}),
        ({"dataset": "s3://data/digits"}, {}),
    ],
)
def test_the_claims_that_the_agent_needs(annotations, claims):
    assert claims_of(spec(**annotations)) == claims


@pytest.mark.parametrize("uri", ["pvc://Data/digits", "pvc://data/../other", "pvc://-data"])
def test_what_is_no_claim_and_a_path_in_it(uri):
    problem = claim_path_problem("dataset", parse_uri(uri))
    assert "Write pvc://CLAIM/PATH" in str(problem)


@pytest.mark.parametrize("scheme", ["nfs", "juicefs", "image", "cifs"])
def test_schemes_that_no_engine_opens_have_a_hint(scheme):
    assert hint_for(scheme)[0].isupper()


def test_others_have_none():
    assert hint_for("s3") == ""
