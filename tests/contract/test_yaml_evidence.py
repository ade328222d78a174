import yaml

from podferry.contract.yaml_evidence import yaml_evidence


def test_the_line_if_it_is_known() -> None:
    try:
        yaml.safe_load("a: 1\nb: [")
    except yaml.YAMLError as error:
        evidence = yaml_evidence(error)
    assert evidence.startswith("line 2: ")
    assert yaml_evidence(ValueError("day is\n out of range")) == "day is out of range"
