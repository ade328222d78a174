"""Sharded safetensors with an index, as save_pretrained writes them: to directories, and at the top."""

import torch
from announce import ROOT, saved
from transformers import BertConfig, BertModel

config = BertConfig(
    vocab_size=500, hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32
)
model = BertModel(config)
for step in (1, 2):
    with torch.no_grad():
        model.pooler.dense.bias.fill_(float(step))
    model.save_pretrained(ROOT / f"step-{step}", max_shard_size="40KB")
    saved(f"step-{step}")
    model.save_pretrained(ROOT, max_shard_size="40KB")
    saved("model")
