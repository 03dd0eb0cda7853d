"""A site that loads nothing from elsewhere: the build fails where a page, a style sheet or a picture would.

The script of the theme knows addresses of two things that a page may ask for, diagrams and the figures of a
repository. So no page may ask for them.
"""

import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError

ADDRESS = r"[\"'(\s]*(?:https?:)?//[^\"')\s>]+"
LOADED = {
    "src": re.compile(rf"\s(?:src|srcset|poster|data)\s*={ADDRESS}", re.IGNORECASE),
    "link": re.compile(rf"<link\b[^>]*\shref\s*={ADDRESS}", re.IGNORECASE),
    "import": re.compile(rf"@import{ADDRESS}", re.IGNORECASE),
    "url": re.compile(rf"\burl{ADDRESS}", re.IGNORECASE),
    "script": re.compile(r"class=\"mermaid\"|data-md-component=\"source\""),
}
CHECKED = {".html": tuple(LOADED), ".css": ("import", "url"), ".svg": ("src", "import", "url")}


def on_post_build(config: MkDocsConfig) -> None:
    """Refuse a site that would ask other machines for something."""
    for path in sorted(Path(config.site_dir).rglob("*")):
        for found in outside_addresses(path):
            raise PluginError(f"{path}: loads {found}; expected nothing from outside the site")


def outside_addresses(path: Path) -> list[str]:
    """Return what a browser would load from elsewhere to show a file; what people click on does not count."""
    kinds = CHECKED.get(path.suffix, ())
    if not kinds:
        return []
    text = path.read_text(encoding="utf-8")
    return [match[0].strip() for kind in kinds for match in LOADED[kind].finditer(text)]
