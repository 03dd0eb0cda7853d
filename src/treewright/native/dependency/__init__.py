"""Compiled loops of dependency parsing."""
