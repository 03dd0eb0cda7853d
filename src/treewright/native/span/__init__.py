"""Charts of the span parser."""
