import json
import re

import msgspec

from podferry.contract.destination.commit import Commit, commit_name, encode_commit

FIT = "team.job.fit"


def test_ls_golden(podferry, destination, golden):
    said = podferry("checkpoints", "ls", destination.uri, FIT)
    assert (said.code, said.err) == (0, "")
    golden("checkpoints-ls-lineage", said.out)
    said = podferry("checkpoints", "ls", destination.uri)
    assert said.code == 0
    golden("checkpoints-ls", said.out)


def test_show_golden(podferry, destination, golden):
    said = podferry("checkpoints", "show", destination.uri, "team.job.tune")
    assert (said.code, said.err) == (0, "")
    text = said.out.replace(str(destination.uri), "memory://ck/team")
    golden("checkpoints-show", re.sub(r"(?m)^(created +)[0-9]{4}-\S+\+00:00$", r"\1(when)", text))


def test_json_output(podferry, destination):
    found = json.loads(podferry("checkpoints", "ls", destination.uri, "-o", "json").out)
    assert [(one["lineage"], one["commits"], one["newest"]["step"]) for one in found] == [
        (FIT, 2, 200),
        ("team.job.tune", 1, 7),
    ]
    [fit] = json.loads(podferry("checkpoints", "ls", destination.uri, FIT, "-o", "json").out)
    assert [commit["name"] for commit in fit["commits"]] == ["step-200", "step-100"]
    shown = json.loads(podferry("checkpoints", "show", destination.uri, FIT, "step-100", "-o", "json").out)
    assert (shown["sequence"], shown["run"], len(shown["files"])) == (1, "run-7", 1)
    verdicts = json.loads(podferry("checkpoints", "verify", destination.uri, "-o", "json").out)
    assert {verdict["state"] for verdict in verdicts} == {"intact"}


def test_files_of_an_earlier_checkpoint_are_reported(podferry, destination):
    first = json.loads(podferry("checkpoints", "show", destination.uri, FIT, "step-100", "-o", "json").out)
    document = {**first, "sequence": 3, "checkpoint": "step-300-0123456789ab", "name": "step-300"}
    destination.write(f"{FIT}/{commit_name(3)}", encode_commit(msgspec.convert(document, Commit)))
    said = podferry("checkpoints", "show", destination.uri, FIT)
    assert f"step-100.pt is stored at {destination.uri}/{FIT}/{first['checkpoint']}/step-100.pt" in said.err


def test_show_lists_ranks_if_files_differ(podferry, destination, golden):
    destination.commit_gang(0, 1)
    out = podferry("checkpoints", "show", destination.uri, "team.job.gang").out
    golden("checkpoints-show-ranks", out.partition("\n\n")[2])
    assert podferry("checkpoints", "verify", destination.uri, "team.job.gang", "--deep").code == 0
