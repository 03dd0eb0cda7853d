"""Parsers: from words to trees."""
