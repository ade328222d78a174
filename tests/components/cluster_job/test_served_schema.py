from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podferry.components.cluster_job.job_kind import PADDLE_JOB, TRAIN_JOB
from podferry.components.cluster_job.served_schema import spec_schema, typed
from podferry.contract.errors import NotFound

INTEGER, TEXT, BOOLEAN = {"type": "integer"}, {"type": "string"}, {"type": "boolean"}
SCHEMA = {
    "properties": {
        "trainer": {
            "properties": {
                "numNodes": INTEGER,
                "image": TEXT,
                "command": {"items": TEXT},
                "resources": {"additionalProperties": {"x-kubernetes-int-or-string": True}},
            }
        },
        "suspend": BOOLEAN,
        "counts": {"items": INTEGER},
        "limits": {"additionalProperties": INTEGER},
    }
}


def document_of(kind: str, schema: Any) -> Any:
    kinds = [{"group": "trainer.kubeflow.org", "kind": kind, "version": "v1alpha1"}]
    return {"x-kubernetes-group-version-kind": kinds, "properties": {"spec": schema}}


def test_the_schema_is_found_by_its_kind() -> None:
    schemas = {"a": document_of("TrainJobList", {}), "b": document_of("TrainJob", {"x": 1}), "c": TEXT}
    assert spec_schema({"components": {"schemas": schemas}}, TRAIN_JOB) == {"x": 1}
    with pytest.raises(NotFound, match="Install PaddlePaddle's operator"):
        spec_schema({"components": {"schemas": schemas}}, PADDLE_JOB)
    with pytest.raises(NotFound, match="does not serve TrainJob"):
        spec_schema({}, TRAIN_JOB)


def test_texts_of_kfp_get_the_types_of_the_schema() -> None:
    value = {
        "trainer": {
            "numNodes": "2.0",
            "image": "2",
            "command": ["3", "true"],
            "resources": {"nvidia.com/gpu": "1"},
        },
        "suspend": "True",
        "counts": ["1", "2", "three"],
        "limits": {"a": "4"},
        "unknown": {"replicas": "5", "doubles": [1.0, 0.5]},
    }
    assert typed(value, SCHEMA) == {
        "trainer": {
            "numNodes": 2,
            "image": "2",
            "command": ["3", "true"],
            "resources": {"nvidia.com/gpu": "1"},
        },
        "suspend": True,
        "counts": [1, 2, "three"],
        "limits": {"a": 4},
        "unknown": {"replicas": "5", "doubles": [1, 0.5]},
    }


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)


@given(JSON)
def test_without_a_schema_nothing_but_doubles_changes(value: Any) -> None:
    assert typed(value, {}) == value
