import json

from podferry.contract.destination.confidence import CONFIRMED, Confirmer, decode_confirmation
from podferry.storage.memory.store import CONTENTS

FIT = "team.job.fit"


def confirmations(destination):
    objects = CONTENTS[destination.uri.bucket].objects
    return [decode_confirmation(data, key) for key, data in objects.items() if f"/{CONFIRMED}/" in key]


def test_a_confirmed_checkpoint_is_sure(podferry, destination):
    destination.doubtful()
    objects = CONTENTS[destination.uri.bucket].objects
    before = dict(objects)
    said = podferry("checkpoints", "confirm", destination.uri, FIT, "step-300", "--reason", "I looked")
    assert (said.code, said.err) == (0, "step-300 is confirmed\n")
    assert "confidence  sure\n" in said.out
    [made] = confirmations(destination)
    assert (made.sequence, made.by, made.reason, made.rank) == (3, Confirmer.PERSON, "I looked", None)
    # One object more; none was changed, so no agent notices.
    assert {key: objects[key] for key in before} == before
    assert len(objects) == len(before) + 1
    assert podferry("checkpoints", "verify", destination.uri).code == 0


def test_a_sure_one_needs_no_confirmation(podferry, destination):
    calls = CONTENTS[destination.uri.bucket].calls
    calls.clear()
    said = podferry("checkpoints", "confirm", destination.uri / FIT, "step-200")
    assert (said.code, said.err) == (0, "step-200 is sure already\n")
    assert not any(call == "write" for call, _ in calls)
    destination.doubtful()
    found = [
        json.loads(podferry("checkpoints", "confirm", destination.uri, FIT, "step-300", "-o", "json").out)
        for _ in range(2)
    ]
    assert [one["confirmed"] for one in found] == [True, False]
    assert [one["confidence"] for one in found] == ["sure", "sure"]


def test_a_checkpoint_with_missing_files_is_refused(podferry, destination):
    commit = destination.doubtful()
    place = f"{FIT}/{commit.files[0].object}"
    destination.write(place, b"c" * 10)
    said = podferry("checkpoints", "confirm", destination.uri, FIT, "step-300")
    assert said.code == 1
    assert "is not complete: step-300.pt has the wrong size (10 bytes, the commit says 3000)" in said.err
    destination.delete(place)
    said = podferry("checkpoints", "confirm", destination.uri, FIT, "step-300")
    assert said.code == 1
    assert "step-300.pt is missing" in said.err
    assert "or confirm another checkpoint" in said.err
    assert confirmations(destination) == []


def test_the_nearest_name_is_suggested(podferry, destination):
    said = podferry("checkpoints", "confirm", destination.uri, FIT, "step-30")
    assert said.code == 1
    assert "Did you mean" in said.err
    said = podferry("checkpoints", "confirm", destination.uri, FIT)
    assert said.code == 2
    assert "name the checkpoint to confirm" in said.err
