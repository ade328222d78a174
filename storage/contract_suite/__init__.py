"""What every store must do, as tests: docs/engines.md says how an engine runs them.

Only tests import this package; it needs the extra `contract-suite`.
"""
