import pytest
import yaml

from podferry.cli.cache.job import VERBS
from podferry.cli.dataset.sync import sync as copy

SAMPLE_JOB = """
apiVersion: batch.paddlepaddle.org/v1alpha1
kind: SampleJob
metadata: {name: nightly, namespace: paddle-system}
spec:
  type: sync
  sampleSetRef: {name: imagenet}
  secretRef: {name: store}
  syncOptions: {source: s3://a/b, threads: 4}
"""


@pytest.fixture
def job(podferry):
    return lambda *words, **more: podferry("cache", "job", *words, **more)


def rendered(said):
    assert said.code == 0, said
    *_, last = yaml.safe_load_all(said.out)
    return last


def args(workload):
    return workload["spec"]["template"]["spec"]["containers"][0]["args"]


def test_a_verb_with_its_own_options(job):
    found = rendered(job("--image", "mine", "warmup", "digits", "-n", "team", "--timeout", "60"))
    assert (found["kind"], found["metadata"]["namespace"]) == ("Job", "team")
    assert args(found) == ["cache", "warmup", "digits", "-n", "team", "--timeout", "60"]
    assert found["spec"]["template"]["spec"]["containers"][0]["image"] == "mine"


@pytest.mark.parametrize("verb", ["warmup", "clear"])
def test_verbs_that_ask_the_holders_take_no_secret(job, tmp_path, verb):
    assert "--secret: not used (a " in job("--secret", "keys", verb, "digits").err
    (tmp_path / "job.yaml").write_text(SAMPLE_JOB.replace("type: sync", f"type: {verb}"))
    said = job("-f", tmp_path / "job.yaml")
    assert "--secret-dir" not in " ".join(args(rendered(said)))
    assert "spec.secretRef is not used" in said.err


def test_a_cronjob_may_have_the_longest_name_of_a_cache_and_no_longer_one(job, tmp_path):
    found = rendered(job("--schedule", "@daily", "warmup", "d" * 32))
    assert len(found["metadata"]["name"]) <= 52
    (tmp_path / "job.yaml").write_text(SAMPLE_JOB.replace("nightly", "n" * 53))
    assert rendered(job("-f", tmp_path / "job.yaml"))
    said = job("-f", tmp_path / "job.yaml", "--schedule", "@daily")
    assert "too long for a CronJob" in said.err


def test_a_removal_can_be_repeated(job):
    assert "--missing-ok" in args(rendered(job("rmr", "digits", "a", "--yes")))
    assert "--missing-ok" not in args(rendered(job("rmr", "digits", "a")))


def test_a_schedule(job):
    assert rendered(job("--schedule", "0 3 * * 1-5", "clear", "digits"))["kind"] == "CronJob"
    assert "not a schedule" in job("--schedule", "daily", "clear", "digits").err


def test_a_sample_job_and_options_that_replace_what_it_says(job, tmp_path):
    (tmp_path / "job.yaml").write_text(SAMPLE_JOB)
    said = job("-f", tmp_path / "job.yaml", "--workers", "3", "--secret", "other")
    found = rendered(said)
    assert (found["metadata"]["name"], found["spec"]["completions"]) == ("nightly", 3)
    assert args(found)[:4] == ["cache", "sync", "imagenet", "--namespace=paddle-system"]
    assert args(found)[-2:] == ["--secret-dir=/podferry/secret", "--shard=$(JOB_COMPLETION_INDEX)/3"]
    assert "secretName: other" in said.out
    assert "spec.syncOptions.threads is ignored" in said.err


@pytest.mark.parametrize(
    "spec",
    [
        {"type": "warmup"},
        {"type": "clear"},
        {"type": "rmr", "rmrOptions": {"paths": ["/a", "b"]}},
        {"type": "sync", "syncOptions": {"source": "s3://a/b", "delete-dst": True, "include": "*.jpg"}},
        {"type": "sync", "syncOptions": {"source": "s3://a.s3.x.amazonaws.com/b", "destination": "bos://c"}},
    ],
)
def test_each_sample_job_has_arguments_that_its_verb_takes(job, tmp_path, spec):
    document = yaml.safe_load(SAMPLE_JOB)
    document["spec"] = {"sampleSetRef": {"name": "imagenet"}, **spec}
    (tmp_path / "job.yaml").write_text(yaml.safe_dump(document))
    group, verb, *words = args(rendered(job("-f", tmp_path / "job.yaml")))
    command = copy if group == "dataset" else VERBS[verb]
    assert command.make_context(verb, words).params


def test_a_password_gets_into_no_job(job):
    said = job("sync", "digits", "s3://key:hidden@a/b")
    assert (said.code, said.out) == (1, "")
    assert "a URI must not have a password" in said.err
    assert "hidden" not in said.err


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"type": "rmr", "rmrOptions": {"paths": ["/a/../b"]}}, "PATH: "),
        ({"type": "rmr", "rmrOptions": {"paths": ["/"]}}, "PATH: "),
        ({"type": "sync", "syncOptions": {"source": "s3://key:hidden@a/b"}}, "must not have a password"),
    ],
)
def test_a_sample_job_that_would_fail_is_refused(job, tmp_path, changes, text):
    document = yaml.safe_load(SAMPLE_JOB)
    document["spec"] = {"sampleSetRef": {"name": "imagenet"}, **changes}
    (tmp_path / "job.yaml").write_text(yaml.safe_dump(document))
    said = job("-f", tmp_path / "job.yaml")
    assert (said.code, said.out) == (1, "")
    assert text in said.err
    assert "hidden" not in said.err


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ((), "either VERB and NAME, or --filename"),
        (("status",), "There is no verb 'status' to run as a Job"),
        (("warmup",), "Missing argument 'NAME'"),
        (("warmup", "digits", "--node", "n"), "No such option"),
        (("clear", "digits", "--kubeconfig", "x"), "--kubeconfig means nothing in the cluster"),
        (("rmr", "digits", "a", "--secret-dir", "/x"), "Give --secret before the verb"),
        (("sync", "digits", "s3://a/b", "--shard", "0/2"), "Give --workers before the verb"),
        (
            ("--workers", "2", "--to-secret", "s", "clear", "digits"),
            "--to-secret: only a sync has two places",
        ),
        (("--workers", "2", "sync", "digits", "s3://a/b", "--unpack"), "unpacked by one process"),
        (("sync", "digits", "s3//a/b?engine=", "-n", "a b"), "not a name of a namespace ('a b')"),
        (("rmr", "digits", "a/../b", "--yes"), "PATH: "),
        (("rmr", "digits", "", "/", "--yes"), "PATH: "),
        (("--image", "a b", "warmup", "digits"), "not a name of an image ('a b')"),
    ],
)
def test_what_is_no_job(job, words, text):
    said = job(*words)
    assert said.code != 0
    assert text in said.err
    assert said.out == ""
