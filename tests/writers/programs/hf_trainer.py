"""Hugging Face's Trainer, which keeps two checkpoints."""

import torch
from announce import ROOT, saved
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    Trainer,
    TrainerCallback,
    TrainingArguments,
)


class Saved(TrainerCallback):
    def on_save(self, args, state, control, **kwargs):
        saved(f"checkpoint-{state.global_step}")


config = BertConfig(
    vocab_size=50, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16
)
row = {"input_ids": torch.ones(8, dtype=torch.long), "labels": torch.tensor(1)}
arguments = TrainingArguments(
    str(ROOT),
    max_steps=6,
    save_steps=2,
    save_total_limit=2,
    per_device_train_batch_size=1,
    report_to=[],
    use_cpu=True,
    disable_tqdm=True,
)
Trainer(
    BertForSequenceClassification(config), arguments, train_dataset=[row] * 8, callbacks=[Saved()]
).train()
