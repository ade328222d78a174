"""The Secret of the webhook's replicas: certificates, and the keys that sign stamps."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from datetime import UTC, datetime

from podferry.webhook.cluster.certificates import Certificates, renew_if_needed
from podferry.webhook.cluster.rotation import KEYS_KEY, SECRET_KEYS
from podferry.webhook.cluster.signing_keys import SigningKey, SigningKeys, decode_keys, encode_keys
from tests.cluster.cluster import Cluster
from tests.e2e import install

SECRET = ("-n", install.NAMESPACE, "secret/podferry-webhook")


def leaf(cluster: Cluster) -> bytes:
    """The certificate that replicas serve, or will soon."""
    return _read(cluster)["tls.crt"]


def replace_leaf(cluster: Cluster) -> None:
    """Store a certificate for another name, which the next replica that looks replaces."""
    data = _read(cluster)
    current = Certificates(**{field: data[key] for field, key in SECRET_KEYS.items()})
    other = renew_if_needed(current, ["other.podferry.svc"], datetime.now(UTC))
    assert other.bundle == current.bundle
    _write(cluster, {SECRET_KEYS[name]: getattr(other, name) for name in ("certificate", "key")})


def signing_keys(cluster: Cluster) -> SigningKeys:
    """Newest first."""
    return decode_keys(_read(cluster)[KEYS_KEY])


def age_newest_key(cluster: Cluster, seconds: int) -> None:
    """Let the newest key have been made earlier, as if so much time had passed."""
    newest, *others = signing_keys(cluster)
    aged = SigningKey(newest.made_at - seconds, newest.key)
    _write(cluster, {KEYS_KEY: encode_keys((aged, *others))})


def _read(cluster: Cluster) -> dict[str, bytes]:
    return {name: base64.b64decode(text) for name, text in cluster.get(*SECRET)["data"].items()}


def _write(cluster: Cluster, data: Mapping[str, bytes]) -> None:
    encoded = {name: base64.b64encode(value).decode() for name, value in data.items()}
    cluster.kubectl("patch", *SECRET, "--type=merge", "-p", json.dumps({"data": encoded}))
