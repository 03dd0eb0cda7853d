"""Compiled inner loops: arrays in, arrays out.

The only import from the rest of treewright is `cache_folder`, which names the folder for compiled code.
"""
