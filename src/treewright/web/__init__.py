"""The page to look at trees, and the service behind it (extra ``web``)."""
