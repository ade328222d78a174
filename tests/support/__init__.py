"""Helpers shared by the tests of several packages, the demo, the fault injection and the benchmarks."""
