"""One line per library that marks its checkpoints: `lightning`, `transformers`, `accelerate`.

Each module needs its library, which podferry does not install, and is imported only by those who have it.
"""
