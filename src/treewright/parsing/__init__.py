"""Parsers for dependency and constituency trees."""
