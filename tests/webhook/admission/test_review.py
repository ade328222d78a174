import base64
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podferry.contract.errors import InvalidSpec
from podferry.webhook.admission.review import (
    MAX_OBJECTS,
    MAX_WARNING_LENGTH,
    AdmissionRequest,
    allow,
    decode_review,
    deny,
)


def review(**request: Any) -> bytes:
    document = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}
    return json.dumps(document).encode()


def test_a_request() -> None:
    body = review(
        uid="u",
        kind={"group": "", "version": "v1", "kind": "Pod"},
        operation="CREATE",
        namespace="team",
        object={"spec": {"x": [1]}},
        dryRun=True,
        userInfo={"username": "somebody"},
    )
    found = decode_review(body)
    assert (found.uid, found.kind.kind, found.namespace, found.dry_run) == ("u", "Pod", "team", True)
    assert found.object == {"spec": {"x": [1]}}


def test_a_deletion_has_no_object() -> None:
    assert decode_review(review(uid="u", object=None)) == AdmissionRequest("u")


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b'{"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"}',
        b'{"apiVersion": "admission.k8s.io/v1beta1", "kind": "AdmissionReview", "request": {"uid": "u"}}',
        b'{"apiVersion": "v1", "kind": "Pod", "request": {"uid": "u"}}',
        b'{"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {"uid": 7}}',
        b"\xff",
    ],
)
def test_invalid_reviews(body: bytes) -> None:
    with pytest.raises(InvalidSpec):
        decode_review(body)


HUGE = "9" * 400
DEEP = 100_000


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('{"a":' * DEEP, "nested too deeply"),
        (f'{{"x": {"[" * DEEP}{"]" * DEEP}}}', "nested too deeply"),
        (f'{{"x": [{"{}," * MAX_OBJECTS}{{}}]}}', "too many objects"),
        ('{"x": 1e400}', "out of range"),
        ('{"x": NaN}', "malformed"),
        ('{"x": "\\ud800 and more"}', "surrogate"),
        ('{"x": "\\udc00\\ud800"}', "surrogate"),
        ('{"x": "\x01"}', "invalid character"),
        ('{"\udcff": 1}', "UTF-8"),
        ('{"x": "\udcff"}', "not"),
        ("[]", "Expected `object"),
        ('"pod"', "Expected `object"),
        ("{} {}", "malformed"),
    ],
    ids=lambda text: text[:20],
)
def test_hostile_objects_are_refused_with_the_reason(text: str, reason: str) -> None:
    body = review(uid="u", object=0).replace(b" 0", b" " + text.encode(errors="surrogateescape"))
    with pytest.raises(InvalidSpec, match=reason) as raised:
        decode_review(body)
    assert len(str(raised.value)) < 300


def test_of_a_key_that_is_there_twice_the_last_counts() -> None:
    body = review(uid="u", object=0).replace(b'"uid": "u"', b'"uid": "v", "uid": "u"')
    body = body.replace(b" 0", b' {"a": 1, "a": 2, "n": "\\u0000", "i": %s}' % HUGE.encode())
    found = decode_review(body)
    assert found.uid == "u"
    assert found.object is not None
    assert (found.object["a"], found.object["n"]) == (2, "\0")


@given(st.binary(max_size=40))
def test_any_bytes(body: bytes) -> None:
    with pytest.raises(InvalidSpec):
        decode_review(body)


def test_answers() -> None:
    assert json.loads(allow("u")) == {
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "response": {"uid": "u", "allowed": True},
    }
    patch = [{"op": "add", "path": "/a", "value": 1}]
    patched = json.loads(allow("u", patch, ["one\ntwo"]))["response"]
    assert json.loads(base64.b64decode(patched.pop("patch"))) == patch
    assert patched == {"uid": "u", "allowed": True, "patchType": "JSONPatch", "warnings": ["one two"]}
    denied = json.loads(deny("u", "no"))["response"]
    assert denied["status"] == {"code": 422, "reason": "Invalid", "message": "no"}
    assert not denied["allowed"]


@pytest.mark.parametrize("length", [MAX_WARNING_LENGTH, MAX_WARNING_LENGTH + 1, 1000])
def test_warnings_are_short(length: int) -> None:
    (warning,) = json.loads(allow("u", (), ["x" * length]))["response"]["warnings"]
    assert len(warning) == MAX_WARNING_LENGTH
    assert warning.endswith("…") is (length > MAX_WARNING_LENGTH)
