import pytest
import yaml

from tests.support.live_api import LiveApi, live_api


def test_the_options_reach_the_manifests(podferry):
    words = (
        "--source s3://b/c --size 14Gi --nodes 3 --selector pool=gpu -n team --readers lab-* --region eu-1"
    )
    said = podferry(
        "cache",
        "create",
        "digits",
        *words.split(),
        "--secret",
        "keys",
        "--max-rate",
        "200Mi",
        "--refresh",
        "10m",
    )
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
    assert {
        "--readers=team",
        "--readers=lab-*",
        "--region=eu-1",
        "--max-rate=200Mi",
        "--refresh=600s",
    } <= set(arguments)
    assert {volume["name"] for volume in spec["volumes"]} == {"held", "secret", "token"}


def test_namespaces_that_are_named_share(podferry):
    words = ("--size", "1Gi", "--readers", "lab", "--readers", "team-*", "--shared", "/var/lib/podferry/")
    said = podferry("cache", "create", "digits", "--source", "s3://b/c", *words)
    claims = [one for one in yaml.safe_load_all(said.out) if one["kind"] == "PersistentVolumeClaim"]
    assert [one["metadata"]["namespace"] for one in claims] == ["podferry", "podferry", "lab"]
    assert "get no claim: their pods copy (team-*)" in said.err
    for wrong in ("podferry", "/a/../b"):
        said = podferry("cache", "create", "digits", "--source", "s3://b/c", "--shared", wrong)
        assert said.code == 2


def test_a_frozen_reference_has_its_size(podferry):
    frozen = "s3://b/c#sha256=" + "0" * 64 + "&bytes=1000000&files=10"
    assert podferry("cache", "create", "digits", "--source", frozen).code == 0


def test_an_unknown_size_is_named(podferry):
    said = podferry("cache", "create", "digits", "--source", "s3://b/c")
    assert said.code != 0
    assert "--size" in said.err


@pytest.mark.parametrize(
    "words",
    [
        ["Digits"],
        ["d" * 33],
        ["digits", "--selector", "gpu"],
        ["digits", "--size", "x"],
        ["digits", "--max-rate", "100Ki"],
        ["digits", "--refresh", "0"],
        ["digits", "--namespace", "Team A"],
        ["digits", "--readers", "team-a,team-b"],
        ["digits", "--readers", "team-a team-b"],
        ["digits", "--readers", "Team_a"],
        ["digits", "--secret", "My keys"],
        ["digits", "--image", "my image"],
    ],
)
def test_wrong_values_are_refused(podferry, words):
    said = podferry("cache", "create", *words, "--source", "s3://b/c")
    assert (said.code, said.out) == (2, "")


def test_readers_that_mean_nobody_are_named(podferry):
    words = ("--source", "s3://b/c", "--size", "1Gi", "--readers", "team-a,team-b")
    said = podferry("cache", "create", "digits", *words)
    assert "not a namespace or a pattern of some ('team-a,team-b')" in said.err
    assert "--readers again for each further one" in said.err


SET = """
apiVersion: batch.paddlepaddle.org/v1alpha1
kind: SampleSet
metadata: {name: imagenet}
spec:
  partitions: 2
  source: {uri: "bos://imagenet.bj.bcebos.com/train"}
  secretRef: {name: keys}
  noSync: true
"""


def test_a_file_and_options_over_it(podferry, tmp_path):
    (tmp_path / "set.yaml").write_text(SET)
    said = podferry("cache", "create", "-f", tmp_path / "set.yaml", "--size", "5Gi", "--nodes", 3, "--disk")
    assert said.code == 0
    assert said.err == (
        "podferry: spec.noSync is ignored "
        "(holders read the source itself, and there is no volume to fill first).\n"
    )
    *_, service, workload = yaml.safe_load_all(said.out)
    assert service["metadata"]["namespace"] == "podferry"
    assert service["metadata"]["annotations"]["podferry.io/source"] == "bos://imagenet.bj.bcebos.com/train"
    assert workload["spec"]["replicas"] == 3
    assert workload["spec"]["template"]["spec"]["volumes"][0]["emptyDir"] == {"sizeLimit": "5120Mi"}


def test_what_is_missing_is_said_at_once(podferry, tmp_path):
    said = podferry("cache", "create")
    assert said.code != 0
    assert "Give NAME" in said.err
    assert "Give --source" in said.err
    (tmp_path / "set.yaml").write_text(SET)
    said = podferry("cache", "create", "-f", tmp_path / "set.yaml")
    assert "Give --size" in said.err


def test_each_cache_has_a_file_of_its_own(podferry, tmp_path):
    (tmp_path / "set.yaml").write_text(f"{SET}\n---{SET}")
    said = podferry("cache", "create", "-f", tmp_path / "set.yaml")
    assert (said.code, said.out) != (0, "")
    assert "does not have one document" in said.err


def test_it_applies_what_it_prints(podferry, tmp_path):
    words = ("cache", "create", "digits", "--source", "s3://b/c", "--size", "1Gi")
    with live_api(tmp_path) as api:
        said = podferry(*words, "--apply", "--kubeconfig", api.kubeconfig)
        assert said.code == 0, said.err
        assert said.out.splitlines()[-1] == "statefulset/podferry-cache-digits created"
        again = podferry(*words, "--apply", "--kubeconfig", api.kubeconfig)
        assert {line.split()[-1] for line in again.out.splitlines()} == {"unchanged"}
        found = {(one["kind"], one["metadata"]["name"]) for one in api.objects.values()}
    printed = yaml.safe_load_all(podferry(*words).out)
    assert found == {(one["kind"], one["metadata"]["name"]) for one in printed}


def test_a_cluster_without_apply_is_a_mistake(podferry):
    said = podferry("cache", "create", "digits", "--source", "s3://b/c", "--size", "1Gi", "--context", "x")
    assert (said.code, said.out) == (2, "")
    assert "are for --apply" in said.err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--shared", "/"], "not an absolute directory below / ('/')"),
        (["--shared", "/x", "--disk"], "keeps its files in the nodes' memory, not on disks"),
    ],
)
def test_a_shared_cache_that_cannot_be(podferry, words, said):
    done = podferry("cache", "create", "digits", "--source", "s3://b/c", "--size", "1Gi", *words)
    assert done.code != 0
    assert said in done.err


def test_a_cache_that_shares_no_more_has_no_claims(podferry, tmp_path):
    words = ("cache", "create", "digits", "--source", "s3://b/c", "--size", "1Gi", "--readers", "lab")
    with live_api(tmp_path) as api:
        options = ("--apply", "--kubeconfig", api.kubeconfig)
        assert podferry(*words, "--shared", "/node", *options).code == 0
        assert any("persistent" in path for path in api.objects)
        said = podferry(*words, *options)
        assert said.code == 0, said.err
        assert "persistentvolumeclaim/podferry-cache-digits removed" in said.out
        assert not [path for path in api.objects if "persistent" in path]


def test_a_namespace_that_reads_no_more_has_no_claim(podferry, tmp_path):
    words = ("cache", "create", "digits", "--source", "s3://b/c", "--size", "1Gi", "--shared", "/node")
    with live_api(tmp_path) as api:
        options = ("--apply", "--kubeconfig", api.kubeconfig)
        assert podferry(*words, "--readers", "lab", "--readers", "team", *options).code == 0
        said = podferry(*words, "--readers", "team", *options)
        assert said.code == 0, said.err
        assert said.out.splitlines()[-2:] == [
            "persistentvolumeclaim/podferry-cache-digits removed",
            "persistentvolume/podferry-cache.podferry.digits.lab removed",
        ]
        assert not [path for path in api.objects if "lab" in path]
        assert "/api/v1/namespaces/team/persistentvolumeclaims/podferry-cache-digits" in api.objects


def test_a_cache_that_shares_keeps_its_source(podferry, tmp_path):
    words = ("cache", "create", "digits", "--size", "1Gi", "--shared", "/node")
    with live_api(tmp_path) as api:
        options = ("--apply", "--kubeconfig", api.kubeconfig)
        frozen = "s3://b/c#sha256=" + "0" * 64
        for source in ("s3://b/c", frozen):
            assert podferry(*words, "--source", source, *options).code == 0
        before = dict(api.objects)
        for other in ("s3://b/other", "s3://b/c", "s3://b/c#sha256=" + "1" * 64):
            said = podferry(*words, "--source", other, *options)
            assert (said.code, api.objects) == (1, before)
            assert f"the cache digits shares {frozen} with pods, in place (--source {other})" in said.err
        assert podferry("cache", "delete", "digits", "--kubeconfig", api.kubeconfig).code == 0
        assert podferry(*words, "--source", "s3://b/other", *options).code == 0


def test_the_name_of_a_holders_claim_is_no_readers_one(podferry):
    words = ("--source", "s3://b/c", "--size", "1Gi")
    assert podferry("cache", "create", "digits-stage", *words).code == 0
    said = podferry("cache", "create", "digits-stage", *words, "--shared", "/node")
    assert "cannot be called …-stage" in said.err


def test_who_may_not_list_volumes_creates_a_cache_that_shares_nothing(podferry, tmp_path, monkeypatch):
    answer = LiveApi.answer

    def refuse(self, asked, url, *rest):
        return (403, b"{}") if url.startswith("/api/v1/persistent") else answer(self, asked, url, *rest)

    monkeypatch.setattr(LiveApi, "answer", refuse)
    words = ("cache", "create", "digits", "--source", "s3://b/c", "--size", "1Gi", "--apply")
    with live_api(tmp_path) as api:
        said = podferry(*words, "--kubeconfig", api.kubeconfig)
    assert said.code == 0, said.err
