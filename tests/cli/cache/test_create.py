import yaml


def test_the_options_reach_the_manifests(podferry):
    words = (
        "--source s3://b/c --size 14Gi --nodes 3 --selector pool=gpu -n team --readers lab-* --region eu-1"
    )
    said = podferry("cache", "create", "digits", *words.split(), "--secret", "keys")
    assert said.code == 0
    *_, service, workload = yaml.safe_load_all(said.out)
    assert service["metadata"]["annotations"] == {
        "podferry.io/source": "s3://b/c",
        "podferry.io/readers": "lab-*",
    }
    spec = workload["spec"]["template"]["spec"]
    arguments = spec["containers"][0]["args"]
    assert workload["spec"]["replicas"] == 3
    assert spec["nodeSelector"] == {"pool": "gpu"}
    assert {"--readers=team", "--readers=lab-*", "--region=eu-1"} <= set(arguments)
    assert {volume["name"] for volume in spec["volumes"]} == {"held", "secret"}


def test_a_frozen_reference_has_its_size(podferry):
    frozen = "s3://b/c#sha256=" + "0" * 64 + "&bytes=1000000&files=10"
    assert podferry("cache", "create", "digits", "--source", frozen).code == 0


def test_an_unknown_size_is_named(podferry):
    said = podferry("cache", "create", "digits", "--source", "s3://b/c")
    assert said.code != 0
    assert "--size" in said.err


def test_wrong_values_are_refused(podferry):
    for words in (["Digits"], ["d" * 33], ["digits", "--selector", "gpu"], ["digits", "--size", "x"]):
        said = podferry("cache", "create", *words, "--source", "s3://b/c")
        assert (said.code, said.out) == (2, "")
