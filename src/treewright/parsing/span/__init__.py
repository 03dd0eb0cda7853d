"""The neural span-based constituency parser."""
