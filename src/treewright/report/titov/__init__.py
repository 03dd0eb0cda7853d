"""Code shared by the experiments of Titov & Henderson (2005)."""
