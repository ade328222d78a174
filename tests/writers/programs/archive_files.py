"""Archives: a `.nemo` (tar) per step, and a pickle in gzip."""

import gzip
import io
import pickle
import tarfile

from announce import ROOT, saving

for step in (1, 2, 3):
    with saving(f"model-{step}"), tarfile.open(ROOT / f"model-{step}.nemo", "w") as archive:
        for name in ("model_config.yaml", "model_weights.ckpt"):
            member = tarfile.TarInfo(name)
            member.size = 6000
            archive.addfile(member, io.BytesIO(bytes([step]) * 6000))
    with saving(f"state-{step}"), gzip.open(ROOT / f"state-{step}.pkl.gz", "wb") as file:
        pickle.dump([str(number * step) for number in range(9000)], file)
