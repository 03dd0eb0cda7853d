"""The version, read by the build and by `treewright --version`."""

__version__ = "0.1.0"
