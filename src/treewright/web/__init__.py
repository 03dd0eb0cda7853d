"""The web page that shows trees, and its JSON API (extra ``web``)."""
