"""Questions with their classes, and their parses."""
