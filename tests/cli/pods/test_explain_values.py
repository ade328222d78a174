from podferry.cli.pods.explain_values import ExplainedValue, explain_values
from podferry.contract.annotations import read_annotations, settings_of
from podferry.contract.variable_substitution import Variables


def test_values_with_their_sources():
    annotations = {
        "podferry.io/dataset": "s3://$(namespace)/d#bytes=5&files=1",
        "podferry.io/endpoint": "https://store",
        "podferry.io/checkpoints": "s3://c",
        "podferry.io/checkpoint-size": "1Gi",
    }
    variables = Variables(namespace="team")
    spec = read_annotations(annotations, variables)
    found = explain_values(spec, settings_of(annotations), variables, ("team.fit", "its owner"))
    values = {value.key: value for value in found}
    expected = [
        ("dataset", "s3://team/d#bytes=5&files=1", "annotation s3://$(namespace)/d#bytes=5&files=1"),
        ("dataset-size", "5 B in 1 file", "the reference"),
        ("dataset-path", "/dev/shm/dataset", "default"),
        ("dataset-endpoint", "https://store", "annotation podferry.io/endpoint"),
        ("dataset-secret", "-", "default: the pod's own identity"),
        ("checkpoint-size", "1.0 GiB", "annotation"),
        ("lineage", "team.fit", "its owner"),
    ]
    assert [values[key] for key, _, _ in expected] == [ExplainedValue(*one) for one in expected]
    assert not {"include", "outputs", "secret"} & values.keys()
