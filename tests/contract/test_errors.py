import pytest

from podferry.contract import errors
from podferry.contract.errors import FerryError, InvalidSpec, PermanentError, Problem, TemporaryError


def test_a_problem_reads_as_sentences() -> None:
    assert str(Problem("it is too large", "3 GiB", "Write more")) == "it is too large (3 GiB). Write more."
    assert str(Problem("it is wrong")) == "it is wrong."
    assert str(Problem("no such key", "x", "Did you mean 'y'?")) == "no such key (x). Did you mean 'y'?"


def test_all_problems_are_raised_at_once_and_none_is_no_error() -> None:
    InvalidSpec.raise_any([])
    with pytest.raises(InvalidSpec) as caught:
        InvalidSpec.raise_any(Problem(what) for what in ("one", "two"))
    assert str(caught.value) == "one.\ntwo."
    assert len(caught.value.problems) == 2


def test_of_gives_its_own_type() -> None:
    error = errors.Throttled.of("slow down")
    assert type(error) is errors.Throttled
    assert error.delay is None


def test_every_error_type_says_whether_a_retry_helps() -> None:
    kinds = [
        kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, FerryError)
    ]
    assert len(kinds) > 15
    for kind in kinds:
        if kind is not FerryError:
            assert issubclass(kind, PermanentError) != issubclass(kind, TemporaryError)


def test_the_tree_at_the_top_of_the_module_is_the_tree() -> None:
    kinds = [
        name for name, kind in vars(errors).items() if isinstance(kind, type) and issubclass(kind, FerryError)
    ]
    assert errors.__doc__ is not None
    for name in kinds:
        assert f"{name} " in errors.__doc__
