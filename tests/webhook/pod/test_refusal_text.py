from podferry.contract.errors import Problem
from podferry.webhook.pod.refusal_text import MAX_PROBLEMS, refusal_text

MAX_ARGUMENT_BYTES = 128 * 1024


def test_short_problems_stay_as_they_are() -> None:
    problems = [Problem("one is wrong", "1", "Fix it"), Problem("two is wrong", "", "Fix it too")]
    assert refusal_text(problems) == "\n".join(map(str, problems))


def test_a_long_value_is_cut_and_its_remedy_stays() -> None:
    text = refusal_text(
        [Problem("podferry.io/dataset: not a URI", "x" * 200_000, "Write s3://BUCKET/PREFIX")]
    )
    assert text.startswith("podferry.io/dataset: not a URI (xxx")
    assert "characters left out" in text
    assert text.endswith("Write s3://BUCKET/PREFIX.")
    assert len(text) < 1100


def test_any_number_of_the_longest_problems_fits_one_argument() -> None:
    text = refusal_text([Problem("\N{GRINNING FACE}" * 100_000)] * 1000)
    assert len(text.encode()) < MAX_ARGUMENT_BYTES
    assert text.endswith(f"… and {1000 - MAX_PROBLEMS} more problems")
    assert len(refusal_text([Problem("$" * 100_000)] * 1000).replace("$", "$$").encode()) < MAX_ARGUMENT_BYTES
