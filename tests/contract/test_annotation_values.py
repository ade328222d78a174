from hypothesis import given
from hypothesis import strategies as st

from podferry.contract.annotation_values import parse_path
from podferry.contract.errors import InvalidSpec


@given(st.text(alphabet="/.ab", max_size=10))
def test_an_accepted_path_is_normalised(text: str) -> None:
    try:
        path = parse_path(text)
    except InvalidSpec:
        return
    assert path == text
    assert not {"", ".", ".."} & set(path[1:].split("/"))
