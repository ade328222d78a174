"""Steps that train."""
