"""Choosing among the best trees of a parser."""
