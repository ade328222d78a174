"""Runs a PaddleJob of PaddlePaddle's operator, whose workers have podferry's annotations."""
