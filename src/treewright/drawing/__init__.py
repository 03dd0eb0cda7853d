"""Pictures of trees: layout, SVG, PNG, terminal."""
