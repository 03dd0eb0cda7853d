"""Compiled loops of gradient mining."""
