"""The agent: prefetches the dataset, opens the gate, makes checkpoints durable."""
