import copy
import hashlib
import json
from collections.abc import Callable
from typing import Any

import pytest

from podferry.contract.code_version import (
    MAX_CACHED_LENGTH,
    CodeVersion,
    code_changes,
    code_of_container,
    code_of_script,
    code_of_words,
    decode_code,
    encode_code,
)
from podferry.contract.errors import InvalidSpec

Pod = dict[str, Any]


def main_of(pod: Pod) -> Pod:
    found: Pod = next(one for one in pod["spec"]["containers"] if one["name"] == "main")
    return found


def test_a_kfp_step_is_its_component_without_inputs_and_run(
    recorded: Callable[[str], Pod], executor_name: str
) -> None:
    main = main_of(recorded(executor_name))
    other = copy.deepcopy(main)
    for flag, value in (("--run_id", "another"), ("--execution_id", "7"), ("--executor_input", "{}")):
        other["command"][other["command"].index(flag) + 1] = value
    assert code_of_container(other) == code_of_container(main)
    assert code_of_container(main).image == "localhost/kfp:1"
    edited = copy.deepcopy(main)
    edited["args"] = [word.replace("print", "print (1);print") for word in edited["args"]]
    assert code_of_container(edited).digest != code_of_container(main).digest


def test_the_components_own_command_may_follow_the_launchers(recorded: Callable[[str], Pod]) -> None:
    main = main_of(recorded("executor-plain"))
    moved = {**main, "command": [*main["command"], *main["args"]], "args": []}
    assert code_of_container(moved) == code_of_container(main)


def test_other_containers_are_their_command_and_arguments() -> None:
    one = code_of_container({"image": "train:1", "command": ["python", "train.py"], "args": ["--lr", "0.1"]})
    assert one.image == "train:1"
    assert len(str(one.digest)) == len(str(one.image_hash)) == 12
    assert one.digest != code_of_container({"command": ["python", "train.py"], "args": ["--lr", "1"]}).digest
    assert code_of_container({}) == CodeVersion()
    assert CodeVersion().image_hash is None


def test_changes_are_named_as_far_as_both_are_known() -> None:
    before, now = CodeVersion("train:1", "a" * 12), CodeVersion("train:2", "b" * 12)
    changes = code_changes(before, now)
    assert changes == ("image train:1 before, train:2 now", f"code {'a' * 12} before, {'b' * 12} now")
    assert code_changes(before, before) == code_changes(None, now) == code_changes(before, None) == ()
    assert code_changes(before, CodeVersion(digest="a" * 12)) == ()
    assert code_of_script(b"x") != code_of_script(b"y")


def test_it_passes_through_a_variable() -> None:
    code = CodeVersion("train:1", "a" * 12)
    assert decode_code(encode_code(code)) == code
    assert json.loads(encode_code(CodeVersion())) == {}
    assert decode_code("") is None
    with pytest.raises(InvalidSpec, match="PODFERRY_CODE is invalid"):
        decode_code("{")


def test_long_commands_are_hashed_alike() -> None:
    """They are not kept, and their hash is that of the same rule."""
    words = ["python", "x" * MAX_CACHED_LENGTH]
    rule = hashlib.sha256(json.dumps(words).encode()).hexdigest()[:12]
    assert [code_of_words("image", each).digest for each in (words, tuple(words))] == [rule, rule]
    assert code_of_words("image", ["python"]).digest == code_of_words(None, ("python",)).digest
