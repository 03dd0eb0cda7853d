"""What the experiments of Moschitti (2006) share."""
