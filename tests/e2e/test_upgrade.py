"""Agents of one version and the webhook of an earlier one, as during an upgrade: docs/operations.md."""

from __future__ import annotations

import yaml

from tests.e2e import install
from tests.e2e.manifests import TRAINER, Object, container, pod
from tests.e2e.namespace import Namespace
from tests.e2e.site import Site
from tests.e2e.trainers import COMMON, assert_unharmed, release_trainer

INJECTED_EARLIER = install.ROOT / "tests" / "data" / "injected-with-spec-1.yaml"
TRAINS = f"""{COMMON}
found = sorted(int(one.stem[5:]) for one in checkpoints.glob("step-*.bin"))
say(found=found)
for step in (max(found, default=0) + 1, max(found, default=0) + 2):
    write(step, 1000)
    wait_for(str(step))
"""


def test_an_agent_reads_the_settings_of_an_earlier_webhook(site: Site, namespace: Namespace) -> None:
    """Its pod was injected by an earlier version, and the next one continues its lineage."""
    earlier, after = injected_earlier(namespace), trainer(namespace, "after")
    with install.not_registered(site.cluster):
        namespace.start(earlier)
    trained(namespace, earlier, 1, 2)
    namespace.start(after)
    trained(namespace, after, 3, 4)
    assert '{"found": [2]}' in namespace.log("after", TRAINER)


def injected_earlier(namespace: Namespace) -> Object:
    """The recorded pod, for this namespace."""
    text = INJECTED_EARLIER.read_text().replace("http://store", namespace.bucket.endpoint)
    made: Object = yaml.safe_load(text.replace("default.pod.digits", namespace.name))
    for one in made["spec"]["initContainers"]:
        one["image"] = install.IMAGE
    (trains,) = made["spec"]["containers"]
    trains |= {name: container(script=TRAINS)[name] for name in ("image", "command")}
    return made


def trainer(namespace: Namespace, name: str) -> Object:
    """A pod that continues one lineage by two steps."""
    settings = namespace.training_annotations(lineage=namespace.name)
    return pod(name, container(script=TRAINS), annotations=settings)


def steps(namespace: Namespace) -> list[int | None]:
    return [one.step for one in namespace.bucket.commits(namespace.name)]


def trained(namespace: Namespace, manifest: Object, *left: int) -> None:
    """Let a pod write its last steps, and check that they are durable and that nothing has been harmed."""
    for step in left:
        namespace.until(f"step {step} to be durable", lambda step=step: step in steps(namespace))
        release_trainer(namespace, manifest["metadata"]["name"], str(step))
    assert_unharmed(namespace.outcome(manifest))
