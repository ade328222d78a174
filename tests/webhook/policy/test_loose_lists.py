import msgspec
import pytest

from podferry.contract.location_globs import allows
from podferry.webhook.policy.loose_lists import loose_lists
from podferry.webhook.policy.policy import AllowedLocations, Guardrail, PodSelector, Policy


def warnings(policy: Policy, **lists: tuple[str, ...]) -> list[str]:
    return list(loose_lists(msgspec.structs.replace(policy, allowed=AllowedLocations(**lists))))


@pytest.mark.parametrize(
    ("glob", "other"),
    [
        ("sftp://nas*", "sftp://nas.elsewhere.example"),
        ("sftp://*@nas*/data/", "sftp://*@nas.elsewhere.example/data/"),
        ("hdfs://nn1*:8020/", "hdfs://nn1.elsewhere.example:8020/"),
        ("tape://vault*/", "tape://vault.elsewhere.example/"),
    ],
)
def test_a_host_that_does_not_end(policy: Policy, glob: str, other: str) -> None:
    (warning,) = warnings(policy, sources=(glob, "*"))
    assert warning == f"allowed.sources: {glob} also allows {other}. Write the host to its end"
    assert allows([glob], other.replace("*@", "eve@"))


@pytest.mark.parametrize(
    "glob", ["*", "sftp://*", "sftp://nas/*", "s3://data*", "sftp://nas-?/", "https://*.lab/", "pvc://x*"]
)
def test_others_end(policy: Policy, glob: str) -> None:
    assert warnings(policy, destinations=(glob, "*")) == []


def test_endpoints_are_hosts_and_guardrails_count(policy: Policy) -> None:
    assert len(warnings(policy, endpoints=("https://store*",))) == 1
    guarded = msgspec.structs.replace(
        policy,
        guardrails=(Guardrail(PodSelector(("team-*",)), AllowedLocations(endpoints=("https://store*",))),),
    )
    (warning,) = loose_lists(guarded)
    assert warning.startswith("guardrails[0].allowed.endpoints: https://store* also allows")


def test_buckets_of_any_service(policy: Policy) -> None:
    (warning,) = warnings(policy, sources=("s3://data/*",), destinations=("s3://results/*",))
    assert warning.startswith("allowed.endpoints is *: a Secret, or an annotation, may name another service")
    lists = {
        "sources": ("s3://data/*",),
        "destinations": ("s3://results/*",),
        "endpoints": ("https://s3.lab",),
    }
    assert warnings(policy, **lists) == []
