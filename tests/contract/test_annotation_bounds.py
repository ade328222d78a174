import time

import pytest

from podferry.contract.annotations import read_annotations
from podferry.contract.errors import InvalidSpec
from podferry.contract.spec import PREFIX


@pytest.mark.parametrize(
    ("annotations", "what"),
    [
        ({f"podferry.io/dataset.a{number}": "s3://b/c" for number in range(3000)}, "too many"),
        ({"podferry.io/include": "*" * 1_000_000}, "too long"),
        ({f"podferry.io/{'x' * 1000}{number}": "" for number in range(300)}, "too many|too long"),
    ],
)
def test_too_much_is_refused_at_once(annotations: dict[str, str], what: str) -> None:
    """Each dataset is compared with each other one: thousands took a minute."""
    started = time.process_time()
    with pytest.raises(InvalidSpec, match=what) as caught:
        read_annotations(annotations)
    assert time.process_time() - started < 1.0
    assert len(str(caught.value)) < 500


@pytest.mark.parametrize("name", ["checkpoints", "lineage", "dataset.images"])
def test_a_nul_character_is_refused(name: str) -> None:
    """The API server admits it."""
    with pytest.raises(InvalidSpec, match=f"podferry.io/{name}: it contains a NUL character"):
        read_annotations({f"{PREFIX}{name}": "s3://c/x\0y"})


def test_its_message_shows_no_password() -> None:
    with pytest.raises(InvalidSpec, match="NUL character") as caught:
        read_annotations({f"{PREFIX}dataset": "sftp://me:pa55@nas/x\0"})
    assert "pa55" not in str(caught.value)
