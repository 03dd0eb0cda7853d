"""Compiled inner loops: arrays in, arrays out.

Nothing here imports the rest of treewright, except the name of the folder for compiled code.
"""
