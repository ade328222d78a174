import pytest
from hypothesis import given
from hypothesis import strategies as st

from podferry.contract.annotation_values import parse_endpoint, parse_path, parse_restore, parse_size
from podferry.contract.errors import InvalidSpec


@given(st.text(alphabet="/.ab", max_size=10))
def test_an_accepted_path_is_normalised(text: str) -> None:
    try:
        path = parse_path(text)
    except InvalidSpec:
        return
    assert path == text
    assert not {"", ".", ".."} & set(path[1:].split("/"))


def test_a_size_in_thousandths_of_bytes_is_a_slip() -> None:
    with pytest.raises(InvalidSpec, match=r"thousandths of a byte \('512m'\). Write 512Mi\."):
        parse_size("512m")
    assert parse_size("512M") == 512_000_000


@pytest.mark.parametrize("text", ["10", " 512 ", "4095"])
def test_a_size_without_a_unit_below_a_page_is_a_slip(text: str) -> None:
    number = text.strip()
    with pytest.raises(InvalidSpec, match=rf"means bytes \('{text}'\). Write {number}Mi or {number}Gi\."):
        parse_size(text)
    assert (parse_size("4096"), parse_size("1Ki")) == (4096, 1024)


def test_a_path_without_the_blanks_around_it() -> None:
    assert parse_path(" /dev/shm/data ") == "/dev/shm/data"


@pytest.mark.parametrize(
    "text", ["https://elsewhere\\.store.example", "https://store/a\\b", "https://store\x00x"]
)
def test_an_endpoint_is_the_same_for_every_client(text: str) -> None:
    """A backslash is a slash for some, whose host would be another one than the policy allows."""
    with pytest.raises(InvalidSpec, match="not an endpoint address"):
        parse_endpoint(text)


def test_an_endpoint_without_the_blanks_around_it() -> None:
    assert parse_endpoint(" http://store:9000/ ") == "http://store:9000"


def test_a_message_shows_no_query_of_an_endpoint() -> None:
    with pytest.raises(InvalidSpec) as caught:
        parse_endpoint("http://store?x=SECRET")
    assert "SECRET" not in str(caught.value)


@pytest.mark.parametrize(("text", "meant"), [("true", "auto"), ("Yes", "auto"), ("false", "never")])
def test_a_truth_value_is_no_checkpoint_to_restore(text: str, meant: str) -> None:
    with pytest.raises(InvalidSpec) as caught:
        parse_restore(text)
    assert str(caught.value.problems[0]) == f"not a way to restore ({text!r}). Write {meant}."
