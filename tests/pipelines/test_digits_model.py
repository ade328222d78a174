import numpy as np
import pytest
from PIL import Image

from podferry.pipelines.digits_model import accuracy, load_model, new_model, save_model, train_epoch


@pytest.fixture
def images(tmp_path):
    """Ten images per digit, each digit with its own pixel row or column."""
    random = np.random.default_rng(1)
    paths = []
    for digit in range(10):
        (tmp_path / str(digit)).mkdir()
        for number in range(10):
            pixels = random.integers(0, 60, (8, 8))
            pixels.ravel()[digit * 6 : digit * 6 + 6] = 250
            paths.append(tmp_path / str(digit) / f"{number}.png")
            Image.fromarray(pixels.astype(np.uint8)).save(paths[-1])
    return paths


def train(model, images, epochs):
    for _ in range(epochs):
        model, loss = train_epoch(model, images)
    return model, loss


def same(one, other):
    return all(
        (a == b).all() for a, b in zip(one.weights + one.momenta, other.weights + other.momenta, strict=True)
    )


def test_it_learns(images):
    untrained = new_model(3)
    trained, loss = train(untrained, images, 8)
    assert trained.epoch == 8
    assert loss < 0.5
    assert accuracy(untrained, images) < 0.5
    assert accuracy(trained, images) > 0.95


def test_a_checkpoint_holds_all_that_training_needs(images, tmp_path):
    half, _ = train(new_model(3), images, 2)
    save_model(tmp_path / "epoch-02.npz", half)
    loaded = load_model(tmp_path / "epoch-02.npz")
    assert (loaded.epoch, loaded.seed) == (2, 3)
    assert same(loaded, half)


def test_resumed_training_ends_with_the_weights_of_uninterrupted_training(images, tmp_path):
    uninterrupted, _ = train(new_model(3), images, 4)
    half, _ = train(new_model(3), images, 2)
    save_model(tmp_path / "half.npz", half)
    resumed, _ = train(load_model(tmp_path / "half.npz"), images, 2)
    assert same(uninterrupted, resumed)


def test_another_seed_gives_another_model(images):
    assert not same(train(new_model(3), images, 1)[0], train(new_model(4), images, 1)[0])
