"""Compiled inner loops: arrays in, arrays out.

Nothing here imports the rest of treewright, but for the folder that compiled code is kept in.
"""
