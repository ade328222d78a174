"""A later version of podferry, for an upgrade: another image, whose policy has a key that ours lacks."""

from __future__ import annotations

import json
from pathlib import Path

import yaml

from tests.cluster.cluster import Cluster
from tests.e2e import install

IMAGE = "localhost/podferry:later"
KEY = "later"
"""The policy's new key."""
DOCKERFILE = f"""
FROM {install.IMAGE}
USER 0
RUN cd /opt/podferry/lib/python3*/site-packages/podferry/webhook/policy \\
 && sed -i 's/^    "agentPort": PORT,$/&\\n    "{KEY}": one_of(("x",)),/' policy_yaml.py \\
 && grep '"{KEY}"' policy_yaml.py \\
 && sed -i 's/^    agent_port: int = .*$/&\\n    {KEY}: str = ""/' policy.py && grep ' {KEY}: str' policy.py
USER 65532:65532
"""


def build(cluster: Cluster, folder: Path) -> None:
    """Build its image into the cluster, in an empty folder."""
    (folder / "Dockerfile").write_text(DOCKERFILE)
    cluster.build_image(IMAGE, folder / "Dockerfile", folder)


def overlay(folder: Path, *, webhook: str = IMAGE, **policy: str) -> Path:
    """The tests' overlay with an image of the webhook and a changed policy, in a folder below `folder`."""
    name, _, tag = webhook.partition(":")
    made = folder / "-".join([tag, *policy])
    made.mkdir(exist_ok=True)
    if not (made / "mine").exists():
        (made / "mine").symlink_to(install.OVERLAY)
    document = {
        "resources": ["mine"],
        "images": [{"name": name, "newTag": tag}],
        "patches": [{"patch": json.dumps(_policy(policy))}],
    }
    (made / "kustomization.yaml").write_text(json.dumps(document))
    return made


def _policy(changes: dict[str, str]) -> dict[str, object]:
    config_map = yaml.safe_load((install.OVERLAY / "policy.yaml").read_text())
    policy = yaml.safe_load(config_map["data"]["policy.yaml"])
    return config_map | {"data": {"policy.yaml": yaml.safe_dump(policy | changes)}}
