import pytest

from podferry.contract.mounted_dataset import image_of, mode_problems
from podferry.contract.spec import DatasetMode
from podferry.contract.uri import parse_uri

COPY, SHARE, IMAGE = DatasetMode.COPY, DatasetMode.SHARE, DatasetMode.IMAGE


def problems(mode: DatasetMode, uri: str, *settings: str) -> list[str]:
    return [str(one) for one in mode_problems("dataset.val", mode, parse_uri(uri), settings)]


@pytest.mark.parametrize(
    ("mode", "uri"),
    [
        (COPY, "s3://datasets/digits"),
        (COPY, "pvc://datasets/digits"),
        (SHARE, "pvc://datasets"),
        (SHARE, "pvc://team.datasets/digits/2026"),
        (IMAGE, "image://registry.example.com:5000/data/digits:1"),
        (IMAGE, "image://digits:1"),
    ],
)
def test_locations_that_fit(mode: DatasetMode, uri: str) -> None:
    assert problems(mode, uri, "dataset.val", "include.other") == []


@pytest.mark.parametrize(
    ("mode", "uri", "remedy"),
    [
        (COPY, "pvc://Datasets/digits", "without . and .. in the path."),
        (COPY, "image://digits:1", "Set podferry.io/mode.val to image."),
        (SHARE, "s3://datasets/digits", "Write pvc://CLAIM/PATH, or remove podferry.io/mode.val."),
        (SHARE, "nfs://nas/export", "Create a claim of a volume of NFS, and write pvc://CLAIM/PATH."),
        (IMAGE, "pvc://datasets", "Write image://REGISTRY/NAME:TAG, or remove podferry.io/mode.val."),
        (SHARE, "pvc://Datasets/digits", "without . and .. in the path."),
        (IMAGE, "image://registry.example/a b:1", "Write image://REGISTRY/NAME:TAG, in lower case."),
        (IMAGE, "image://registry.example/../b", "Write image://REGISTRY/NAME:TAG, in lower case."),
        (IMAGE, "image://registry.example/x@sha256:0a", "Write image://REGISTRY/NAME:TAG, in lower case."),
        (SHARE, "pvc://datasets/../other", "without . and .. in the path."),
    ],
)
def test_locations_that_do_not_fit(mode: DatasetMode, uri: str, remedy: str) -> None:
    (problem,) = problems(mode, uri)
    assert problem.endswith(remedy)


def test_settings_of_copies_have_no_effect() -> None:
    (problem,) = problems(SHARE, "pvc://datasets", "include.val", "include")
    assert problem == (
        "podferry.io/include.val has no effect: podferry.io/mode.val is share, so nothing is copied. "
        "Remove podferry.io/include.val, or podferry.io/mode.val."
    )


@pytest.mark.parametrize("image", ["digits:1", "registry.example.com:5000/data/digits@sha256:0a"])
def test_the_image(image: str) -> None:
    assert image_of(parse_uri(f"image://{image}")) == image
