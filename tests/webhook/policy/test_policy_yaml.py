from textwrap import indent

import pytest

from podferry.contract.errors import InvalidSpec
from podferry.webhook.policy.policy import AllowedLocations, Bounds, Defaults, EgressProxy, OnInvalid, Policy
from podferry.webhook.policy.policy_yaml import read_policy
from tests.support.private_ca import PrivateCa

SHORT = "apiVersion: podferry.io/v1alpha1\nkind: InjectionPolicy\nimage: podferry:1\n"
FULL = f"""{SHORT}
imagePullPolicy: IfNotPresent
agentPort: 9000
onInvalid: deny
defaults:
  {{datasetSize: 10Gi, checkpointSize: 500Mi, outputSize: 1Gi, shmSize: 2Gi, grace: 2m, uploadRate: 100M,
   sidecarCpu: 0.2}}
bounds: {{sidecarMemory: 100Gi, trainerRaise: 50Gi, grace: 1h}}
allowed: {{sources: ["s3://a/*"], destinations: [], endpoints: ["https://x"]}}
datasets: {{digits: s3://datasets/digits/}}
proxy: {{https: "http://proxy:3128", http: "http://proxy:3128/", noProxy: [.svc, 10.0.0.0/8]}}
"""


def problems_of(text: str) -> list[str]:
    with pytest.raises(InvalidSpec) as caught:
        read_policy(text)
    return [str(problem) for problem in caught.value.problems]


def test_the_image_is_enough() -> None:
    assert read_policy(SHORT) == Policy(image="podferry:1")


def test_everything() -> None:
    gib, mib = 1024**3, 1024**2
    assert read_policy(FULL) == Policy(
        image="podferry:1",
        image_pull_policy="IfNotPresent",
        agent_port=9000,
        on_invalid=OnInvalid.DENY,
        defaults=Defaults(10 * gib, 500 * mib, gib, 2 * gib, 120, 100_000_000, "0.2"),
        bounds=Bounds(100 * gib, 50 * gib, 3600),
        allowed=AllowedLocations(("s3://a/*",), (), ("https://x",)),
        datasets={"digits": "s3://datasets/digits"},
        proxy=EgressProxy("http://proxy:3128", "http://proxy:3128", (".svc", "10.0.0.0/8")),
    )


def test_a_ca_bundle_is_its_certificates() -> None:
    pem = PrivateCa().pem
    policy = read_policy(f"{SHORT}caBundle: |\n  # ours\n{indent(pem, '  ')}")
    assert policy.ca_bundle == pem
    assert problems_of(f"{SHORT}caBundle: none")[0].startswith("caBundle: there is no certificate")
    many = indent(pem * 200, "  ")
    measured = f"caBundle: too long for every pod ({len(pem) * 200} bytes"
    assert problems_of(f"{SHORT}caBundle: |\n{many}")[0].startswith(measured)


def test_a_password_is_not_for_the_policy() -> None:
    (problem,) = problems_of(f'{SHORT}proxy: {{https: "http://u:secret@proxy:1"}}')
    assert problem.startswith("proxy.https: a proxy's URL must not have a password")
    assert "secret@" not in problem
    assert problems_of(f"{SHORT}proxy: {{noProxy: x, http: socks5://x}}") == [
        "proxy.noProxy: not a list ('x'). Write a list such as [.svc, 10.0.0.0/8].",
        "proxy.http: not an endpoint address ('socks5://x'). Write https://host:port or http://host:port.",
    ]


def test_all_problems_at_once() -> None:
    text = """
    kind: InjectionPolicies
    imagePullPolicies: Always
    agentPort: 80
    defaults: {shmSizes: 1Gi, shmSize: much, grace: 20m}
    bounds: [1]
    enforcement: Audit
    allowed: {sources: "s3://x", destinations: [1]}
    datasets: {digits: "s3:/x"}
    onInvalid: true
    """
    assert problems_of(text) == [
        "apiVersion is missing from the policy. Add apiVersion.",
        "image is missing from the policy. Add image.",
        "kind: unknown value ('InjectionPolicies'). Did you mean 'InjectionPolicy'?",
        "imagePullPolicies: unknown key in the policy. Did you mean 'imagePullPolicy'?",
        "agentPort: not an unprivileged port (80). Write 1024 to 65535.",
        "defaults.shmSizes: unknown key in the policy. Did you mean 'shmSize'?",
        "defaults.shmSize: not a quantity ('much'). Write a number with a suffix such as Mi or Gi: 14Gi.",
        "bounds: not a mapping ([1]). Keys: sidecarMemory, trainerRaise, grace.",
        "enforcement: unknown value ('Audit'). Did you mean 'audit'?",
        "allowed.sources: not a list ('s3://x'). Write a list of globs such as s3://datasets/*.",
        "allowed.destinations: not a string (1). Write a string.",
        "datasets: not a URI ('s3:/x'). Did you mean s3://x?",
        "onInvalid: unknown value (True). Write one of gate, deny.",
        "defaults.grace is above bounds.grace (1200 s and 600 s). Lower the default.",
    ]


@pytest.mark.parametrize("text", ["", "a: [", "- a", "7"])
def test_invalid_policies(text: str) -> None:
    assert len(problems_of(text)) == 1


def test_the_digest_distinguishes_policies() -> None:
    digests = {
        read_policy(text).digest for text in (SHORT, FULL, SHORT + "# a comment\n", SHORT + "agentPort: 9000")
    }
    assert len(digests) == 3
    assert all(len(digest) == 12 for digest in digests)
