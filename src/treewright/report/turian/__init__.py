"""Code shared by the experiments of Turian & Melamed (2006)."""
