"""Questions with their classes and parses."""
