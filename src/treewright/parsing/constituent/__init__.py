"""The classification-based constituency parser."""
