"""Lightning's ModelCheckpoint and `last.ckpt`: by rename, or by copy if TMPDIR is another mount."""

import warnings
from pathlib import Path

import lightning
import torch
from announce import ROOT, saved
from lightning.pytorch.callbacks import ModelCheckpoint

warnings.simplefilter("ignore")


class Model(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(64, 64)

    def training_step(self, batch, _):
        return self.layer(batch).sum()

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters())


class Keep(ModelCheckpoint):
    def _save_checkpoint(self, trainer, filepath):
        super()._save_checkpoint(trainer, filepath)
        saved(Path(filepath).stem)


KEEP = Keep(ROOT, save_top_k=-1, every_n_epochs=1, save_last=True, save_on_train_epoch_end=True)
lightning.Trainer(
    max_epochs=3,
    callbacks=[KEEP],
    logger=False,
    accelerator="cpu",
    enable_progress_bar=False,
    enable_model_summary=False,
).fit(Model(), torch.utils.data.DataLoader(torch.ones(4, 64), batch_size=2))
