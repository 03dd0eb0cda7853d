"""Drawings of trees: layout, SVG, PNG and text."""
