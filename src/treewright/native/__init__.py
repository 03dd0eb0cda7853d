"""Compiled inner loops that read and fill arrays.

The only import from the rest of treewright is `cache_folder`, which names the folder for compiled code.
"""
