"""An upgrade and a rollback, with pods in training and reviews without a pause: docs/operations.md."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from podferry.webhook.pod.pod_json import SIDECAR
from tests.cluster.process import ClusterError, patient, wait_until
from tests.e2e import install, later_version
from tests.e2e.figures import Figures
from tests.e2e.manifests import TRAINER, Object, container, pod
from tests.e2e.namespace import Namespace
from tests.e2e.review_stream import ReviewStream, review_stream
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


def kubectl(site: Site, *words: str) -> str:
    return site.cluster.kubectl("-n", install.NAMESPACE, *words, timeout=patient(90))


@pytest.fixture(scope="module")
def later_image(site: Site, tmp_path_factory: pytest.TempPathFactory) -> None:
    later_version.build(site.cluster, tmp_path_factory.mktemp("later"))


@pytest.fixture
def upgradable(site: Site, later_image: None) -> Iterator[Site]:
    """The site, with the tests' own version again at the end."""
    try:
        yield site
    finally:
        apply(site, install.OVERLAY)
        rolled_out(site, install.IMAGE)
        with site.namespace() as namespace:
            until_agent(namespace, install.IMAGE)


def apply(site: Site, overlay: Path) -> None:
    kubectl(site, "apply", "-k", str(overlay))


def rolled_out(site: Site, image: str) -> None:
    """Wait for the end of a rollout, and of the replicas that it replaces."""
    kubectl(site, "rollout", "status", install.WEBHOOK, f"--timeout={patient(80):.0f}s")
    wait_until("the other replicas to end", lambda: set(images(site)) == {image}, 60, interval=0.5)


def images(site: Site) -> list[str]:
    """Of the webhook's replicas."""
    found = json.loads(kubectl(site, "get", "pods", install.SELECTOR, "-o", "json"))["items"]
    return [one["spec"]["containers"][0]["image"] for one in found]


def agent_image(made: Object) -> str:
    (sidecar,) = (one for one in made["spec"]["initContainers"] if one["name"] == SIDECAR)
    found: str = sidecar["image"]
    return found


def next_agent(namespace: Namespace, manifest: Object) -> str:
    """The image of the agent of a pod that would be created now."""
    return agent_image(namespace.dry_run(manifest))


def until_agent(namespace: Namespace, image: str) -> None:
    """Wait until every replica injects this agent: each answer may be another's."""
    probe = trainer(namespace, "probe")

    def injected() -> bool:
        return {next_agent(namespace, probe) for _ in range(6)} == {image}

    wait_until(f"pods to get {image}", injected, 90, interval=0.5)


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


@contextlib.contextmanager
def reviewed(namespace: Namespace, figures: Figures, name: str) -> Iterator[ReviewStream]:
    """No review fails in the block."""
    with review_stream(namespace, trainer(namespace, "probe"), rate=50) as stream:
        stream.await_flow()
        yield stream
    figures.record(f"reviews during {name}", stream.figures())
    assert stream.failures == []


def test_pods_of_the_earlier_version_end_well_and_the_next_resumes(
    upgradable: Site, namespace: Namespace, figures: Figures, tmp_path: Path
) -> None:
    """The order of the page: the agent, the webhook, what is new in the policy."""
    before, after = trainer(namespace, "before"), trainer(namespace, "after")
    with reviewed(namespace, figures, "an upgrade"):
        namespace.start(before)
        namespace.until("step 1 to be durable", lambda: steps(namespace) == [1])
        apply(upgradable, only_agent(tmp_path))
        until_agent(namespace, later_version.IMAGE)
        apply(upgradable, later_version.overlay(tmp_path, image=later_version.IMAGE))
        rolled_out(upgradable, later_version.IMAGE)
        apply(upgradable, complete(tmp_path))
        trained(namespace, before, 1, 2)
        namespace.start(after)
        trained(namespace, after, 3, 4)
    assert agent_image(namespace.get("pod", "after")) == later_version.IMAGE
    assert '{"found": [2]}' in namespace.log("after", TRAINER)
    assert steps(namespace) == [1, 2, 3, 4]


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


def only_agent(folder: Path) -> Path:
    """The overlay of the time when pods get the later agent by the earlier webhook."""
    return later_version.overlay(folder, webhook=install.IMAGE, image=later_version.IMAGE)


def complete(folder: Path) -> Path:
    """The overlay at the end of an upgrade."""
    return later_version.overlay(folder, image=later_version.IMAGE, later="x")


def test_a_rollback_with_a_policy_that_the_earlier_version_cannot_read(
    upgradable: Site, namespace: Namespace, figures: Figures, tmp_path: Path
) -> None:
    """Undone without its policy, the earlier version does not start and the later one continues to serve."""
    running = trainer(namespace, "running")
    with pytest.raises(ClusterError, match=f"{later_version.KEY}: unknown key"):
        apply(upgradable, complete(tmp_path))
    rolled_out(upgradable, later_version.IMAGE)  # only the policy was refused
    apply(upgradable, complete(tmp_path))
    until_agent(namespace, later_version.IMAGE)
    namespace.start(running)
    with reviewed(namespace, figures, "a rollback") as stream:
        kubectl(upgradable, "rollout", "undo", install.WEBHOOK)
        reason = wait_until("the earlier version to end", lambda: end_of(upgradable, install.IMAGE), 60)
        assert f"{later_version.KEY}: unknown key" in reason
        seen = stream.injected
        apply(upgradable, only_agent(tmp_path))
        rolled_out(upgradable, install.IMAGE)
        assert stream.injected > seen
        apply(upgradable, install.OVERLAY)
        until_agent(namespace, install.IMAGE)
        trained(namespace, running, 1, 2)
    assert agent_image(namespace.get("pod", "running")) == later_version.IMAGE
    assert steps(namespace) == [1, 2]


def end_of(site: Site, image: str) -> str:
    """What a replica of this image wrote before it ended; empty if none has ended."""
    for one in json.loads(kubectl(site, "get", "pods", install.SELECTOR, "-o", "json"))["items"]:
        status = next(iter(one["status"].get("containerStatuses", [])), {})
        if one["spec"]["containers"][0]["image"] == image and status.get("restartCount"):
            with contextlib.suppress(ClusterError):  # a third start removes the first log
                log = kubectl(site, "logs", one["metadata"]["name"], "--previous")
                # The kubelet says so in place of the log, and kubectl succeeds.
                return "" if log.startswith("unable to retrieve container logs") else log
    return ""
