"""The neural span parser of constituents."""
