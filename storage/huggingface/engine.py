"""What the engine of the Hugging Face Hub declares."""

from podferry.storage.engine import Engine, Scheme

HUGGINGFACE = Engine(
    name="huggingface",
    store="podferry.storage.huggingface.store:HuggingFaceStore",
    schemes=(
        Scheme(
            names=("hf",),
            page="huggingface",
            tested_on="an imitation, which Hugging Face's own client reads, too",
            credentials=("HF_TOKEN", "token"),
            checksums="SHA-256, Git's SHA-1: of files that are read as a whole",
            writable=False,
        ),
    ),
)
