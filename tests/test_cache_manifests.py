"""What deploy/ has for caches is what the commands print and what the documentation shows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from podferry.cache.manifests.cache_spec import CacheSpec
from podferry.cache.manifests.manifests import manifests
from podferry.cli.cache.cache_args import IMAGE
from podferry.contract.cache_api import CACHE_LABEL
from podferry.contract.spec import Access
from podferry.webhook.injection.security_context import NONROOT_USER

ROOT = Path(__file__).parents[1]
DEPLOY = ROOT / "deploy"


def test_the_cache_is_what_create_prints() -> None:
    access = Access("digits-store")
    spec = CacheSpec(
        "digits",
        "podferry",
        "s3://datasets/digits",
        14 << 30,
        IMAGE,
        nodes=2,
        readers=("team-*",),
        access=access,
    )
    text = yaml.safe_dump_all(manifests(spec), sort_keys=False)
    assert (DEPLOY / "cache" / "cache.yaml").read_text() == text


def mounts() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((DEPLOY / "cache-mounts" / "daemonset.yaml").read_text())
    spec: dict[str, Any] = found["spec"]["template"]["spec"]
    return spec


def test_the_mounts_are_those_of_the_documentation() -> None:
    spec = mounts()
    [container] = spec["containers"]
    [script] = container["args"]
    options = f"uid={NONROOT_USER},gid={NONROOT_USER},mode=0755,nosuid,nodev"
    page = (ROOT / "docs" / "cache.md").read_text()
    assert f"size=14g,{options}" in page
    assert f"size=$SIZE,{options}" in script
    assert {"name": "SIZE", "value": "14g"} in container["env"]
    assert spec["nodeSelector"] == {CACHE_LABEL: "true"}


def test_the_privileged_pods_have_no_account_and_podferry_s_image() -> None:
    spec = mounts()
    assert spec["automountServiceAccountToken"] is False
    [container] = spec["containers"]
    assert container["image"] == IMAGE
    assert container["securityContext"]["runAsUser"] == 0  # the image's own user may not enter the node
