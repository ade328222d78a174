"""A volume on the node's disk, and the claim `datasets` of it."""

from __future__ import annotations

from tests.e2e.manifests import Object

CLAIM = "datasets"


def volume(name: str) -> Object:
    """A volume on the node's disk."""
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name},
        "spec": {
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteMany"],
            "persistentVolumeReclaimPolicy": "Retain",
            "storageClassName": "",
            "hostPath": {"path": "/tmp"},
        },
    }


def claim(name: str) -> Object:
    """A claim of that volume."""
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": CLAIM},
        "spec": {
            "accessModes": ["ReadWriteMany"],
            "storageClassName": "",
            "volumeName": name,
            "resources": {"requests": {"storage": "1Gi"}},
        },
    }
