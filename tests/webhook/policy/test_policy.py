import msgspec

from podferry.webhook.policy.policy import Bounds, OnInvalid, Policy


def test_the_digest_is_that_of_the_settings(policy: Policy) -> None:
    assert policy.digest == msgspec.structs.replace(policy, bounds=Bounds()).digest
    assert len(policy.digest) == 12
    assert int(policy.digest, 16)
    changes = ({"agent_port": 1}, {"on_invalid": OnInvalid.DENY}, {"bounds": Bounds(grace=1)})
    changed = {msgspec.structs.replace(policy, **change).digest for change in changes}
    assert len(changed | {policy.digest}) == 4


def test_declared_datasets_count_in_any_order(policy: Policy) -> None:
    datasets = {"a": "s3://d/a", "b": "s3://d/b"}
    one = msgspec.structs.replace(policy, datasets=datasets)
    other = msgspec.structs.replace(policy, datasets=dict(reversed(datasets.items())))
    assert one.digest == other.digest != policy.digest


def test_a_setting_at_its_default_does_not_count(policy: Policy) -> None:
    """So a later version's new keys do not change the stamps."""
    written = Policy(image=policy.image, bounds=Bounds(grace=600), datasets={}, network_sidecars=())
    assert written.digest == policy.digest
    assert Policy(image=policy.image, network_sidecars=("envoy",)).digest != policy.digest
