"""Code shared by the experiments of Moschitti (2006)."""
