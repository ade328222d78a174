"""What suites of several rooms, the demo, the faults and the benchmarks share."""
