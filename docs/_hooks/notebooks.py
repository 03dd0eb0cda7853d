"""Notebooks as pages: each `.ipynb` becomes a page with the outputs that it has stored.

Nothing is run here; `tools/run_notebooks.py` stores the outputs, and a test compares them with a new run.
Pages link to notebooks by their own names, `tutorials/x.ipynb`, which also work in a repository.
"""

import json
import re

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

LINK = re.compile(r"(?<=\]\()(?P<path>[^)\s:]+)\.ipynb(?P<rest>(?:#[^)]*)?\))")
FENCE = "```"


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add a page for each notebook; the notebook itself stays, to be downloaded."""
    for file in list(files):
        if file.src_uri.endswith(".ipynb"):
            notebook = json.loads(file.content_string)
            name = file.src_uri.removesuffix(".ipynb")
            text = as_markdown(notebook, name.rpartition("/")[2])
            files.append(File.generated(config, f"{name}.md", content=text))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Let links to notebooks lead to their pages."""
    return LINK.sub(r"\g<path>.md\g<rest>", markdown)


def as_markdown(notebook: dict, name: str) -> str:
    """Return the cells of a notebook and their outputs as Markdown."""
    parts = []
    for cell in notebook["cells"]:
        source = "".join(cell["source"]).strip()
        if cell["cell_type"] == "markdown":
            parts.append(source)
        else:
            parts.append(f"{FENCE}python\n{source}\n{FENCE}")
            parts += [show_output(output) for output in cell["outputs"]]
    note = f'<p class="notebook"><a href="{name}.ipynb" download>Download this page as a notebook</a></p>'
    return "\n\n".join([parts[0], note, *parts[1:]]) + "\n"


def show_output(output: dict) -> str:
    """Return an output, as a picture where it has one."""
    data = output.get("data", {})
    for kind in ("image/svg+xml", "text/html"):
        if kind in data:
            drawing = re.sub(r"\n\s*\n", "\n", "".join(data[kind]))
            return f'<div class="output picture">{drawing}</div>'
    text = "".join(output["text"] if output["output_type"] == "stream" else data["text/plain"])
    return f'<div class="output" markdown="1">\n\n{FENCE}text\n{text.rstrip()}\n{FENCE}\n\n</div>'
