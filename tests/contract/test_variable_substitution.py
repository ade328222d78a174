import pytest
from hypothesis import given
from hypothesis import strategies as st

from podferry.contract.errors import InvalidSpec
from podferry.contract.variable_substitution import (
    SOURCES,
    Variables,
    escape_variables,
    expand,
    refuse_braces,
)

INPUTS = {"lr": "0.1", "data": "s3://b/$(rank)"}
POD = Variables("team", "digits", "pipe", "train", 3, 8, INPUTS, "0123456789ab", "c0de", "1mage")
NAMES = [*SOURCES, "inputs.lr", "inputs.data"]


def test_every_variable_has_its_value() -> None:
    text = "$(namespace) $(job) $(pipeline) $(task) $(rank)/$(world) $(inputs.lr) $(inputs-hash)"
    assert expand(text, POD) == "team digits pipe train 3/8 0.1 0123456789ab"
    assert expand("$(code-hash) $(image-hash)", POD) == "c0de 1mage"


@given(st.text() | st.text(alphabet="$()a", max_size=20))
def test_escaped_text_stands_for_itself(text: str) -> None:
    assert expand(escape_variables(text), Variables()) == text


@given(st.lists(st.tuples(st.text(max_size=9).map(escape_variables), st.sampled_from(NAMES)), max_size=5))
def test_expansion_goes_part_by_part(parts: list[tuple[str, str]]) -> None:
    # A `$` right before a variable would escape it, so a space parts the two.
    text = "".join(f"{plain} $({name})" for plain, name in parts)
    assert expand(text, POD) == "".join(
        expand(plain, POD) + " " + expand(f"$({name})", POD) for plain, name in parts
    )


def test_a_value_is_not_expanded_again() -> None:
    assert expand("$(inputs.data)", POD) == "s3://b/$(rank)"


@given(st.text())
def test_any_text_expands_or_is_refused(text: str) -> None:
    try:
        expanded = expand(text, POD)
    except InvalidSpec:
        expanded = ""
    assert isinstance(expanded, str)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("$(rnak)", "unknown variable ($(rnak)). Did you mean 'rank'?"),
        ("$(zzzzzz)", "Known: namespace, job"),
        ("$(pod)", "unknown variable"),
        ("$()", "unknown variable"),
        ("$(inputs.lrr)", "no input of this name has a value ($(inputs.lrr)). Did you mean 'lr'?"),
        ("$(inputs.xyz)", "Inputs with a value: data, lr."),
        ("a $(rank", "a variable is not closed"),
        ("$((rank)", "a variable is not closed"),
    ],
)
def test_what_cannot_be_expanded_is_reported(text: str, message: str) -> None:
    with pytest.raises(InvalidSpec) as caught:
        expand(text, POD)
    assert message in str(caught.value)


@pytest.mark.parametrize("name", [*SOURCES, "inputs.x"])
def test_a_variable_without_a_value_says_where_it_comes_from(name: str) -> None:
    with pytest.raises(InvalidSpec, match="has no value in this pod") as caught:
        expand(f"$({name})", Variables())
    assert caught.value.problems[0].remedy == SOURCES.get(name, SOURCES["pipeline"])


def test_a_step_without_inputs_says_so() -> None:
    with pytest.raises(InvalidSpec, match="This step has no inputs"):
        expand("$(inputs.x)", Variables(inputs_hash="0" * 12))


def test_all_problems_are_reported_at_once() -> None:
    with pytest.raises(InvalidSpec) as caught:
        expand("$(a) $(job) $(", Variables())
    assert len(caught.value.problems) == 3


def test_rank_zero_is_a_value() -> None:
    assert expand("$(rank)", Variables(rank=0)) == "0"


def test_variables_as_shells_and_templates_write_them() -> None:
    with pytest.raises(InvalidSpec, match=r"\$\{namespace\}\). Write \$\(namespace\)\.\n.*Write \$\(rank\)"):
        refuse_braces("s3://b/${namespace}/{{ rank }}/${other}")
    refuse_braces("s3://b/${other}/{x}/$(namespace)")
