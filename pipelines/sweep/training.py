"""One trial: trains on the digits with one learning rate."""

from __future__ import annotations

from podferry.pipelines.digits_model import accuracy, load_model, new_model, save_model, train_epoch
from podferry.trainer import ferry

SEED = 7


def train(dataset: str, checkpoints: str, rate: float, epochs: int) -> float:
    """Train up to `epochs`, resuming this trial's newest checkpoint; the accuracy, 0 to 1.

    Args:
        dataset: Reference of images below `train/<digit>/` and `test/<digit>/`.
        checkpoints: URI of the destination, the same for all trials: each has a lineage of its own.
        rate: Learning rate.
        epochs: Epochs in total, including those of earlier attempts.

    Raises:
        FerryError: See `podferry.trainer.ferry.ferry`.
    """
    with ferry(dataset, checkpoints) as f:
        assert f.dataset and f.checkpoints  # noqa: PT018, S101 - both were requested
        model = load_model(f.restored) if f.restored else new_model(SEED)
        images = sorted((f.dataset / "train").glob("*/*.png"))
        while model.epoch < epochs:
            model, _ = train_epoch(model, images, rate=rate)
            save_model(f.checkpoints / f"epoch-{model.epoch:02d}.npz", model)
        return accuracy(model, sorted((f.dataset / "test").glob("*/*.png")))
