from tests.support.undistributed import load

load("demo", "faults")
