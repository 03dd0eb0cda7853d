"""Compiled loops of taggers."""
