"""safetensors as Hugging Face's libraries lay it out: a directory a step, two shards and their index."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable
from pathlib import Path

from safetensors.numpy import load_file, save_file

from faults.writers.frame import Tensors, Writer, main

INDEX = "model.safetensors.index.json"


class Sharded(Writer):
    """`step-12/model-0000N-of-00002.safetensors` and the index, which names both."""

    def save(self, step: int, tensors: Tensors) -> Iterable[Iterable[Path]]:
        """See `Writer.save`."""
        folder = self.root / f"step-{step}"
        folder.mkdir(exist_ok=True)
        large = {name: tensor for name, tensor in tensors.items() if name == "weight"}
        small = {name: tensor for name, tensor in tensors.items() if name not in large}
        where: dict[str, str] = {}
        for number, part in enumerate((large, small), 1):
            shard = f"model-{number:05}-of-00002.safetensors"
            save_file(part, folder / shard)
            where |= dict.fromkeys(part, shard)
        index = {"metadata": {"step": step}, "weight_map": where}
        (folder / INDEX).write_text(json.dumps(index))
        return [[folder]]

    def load(self) -> tuple[int, Tensors] | None:
        """See `Writer.load`."""
        found = sorted(self.root.glob("step-*"), key=lambda path: int(path.name[5:]))
        if not found:
            return None
        index = json.loads((found[-1] / INDEX).read_text())
        shards = {shard: load_file(found[-1] / shard) for shard in set(index["weight_map"].values())}
        return index["metadata"]["step"], {
            name: shards[shard][name] for name, shard in index["weight_map"].items()
        }

    def forget(self, step: int) -> None:
        """See `Writer.forget`."""
        shutil.rmtree(self.root / f"step-{step}", ignore_errors=True)


if __name__ == "__main__":
    main(Sharded)
