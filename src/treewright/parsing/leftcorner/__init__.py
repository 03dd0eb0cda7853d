"""The neural left-corner parser."""
