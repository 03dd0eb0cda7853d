"""The constituency parser by classification."""
