"""Text to objects to flat arrays: readers, writers and the trees they give."""
