"""The graph-based dependency parser."""
