"""Run the notebooks of docs/tutorials and store their outputs.

    python tools/run_notebooks.py [NAME ...]

Cells run in this process, from top to bottom, in an empty folder. The output of a cell is its printed text,
followed by the value of its last expression as a picture, HTML or text, as in Jupyter.
`tests/test_documentation.py` compares the stored outputs with those of a new run.
"""

import ast
import contextlib
import io
import json
import os
import sys
import tempfile
from pathlib import Path

FOLDER = Path(__file__).parents[1] / "docs" / "tutorials"
PICTURES = {"image/svg+xml": "_repr_svg_", "text/html": "_repr_html_"}


def main():
    """Run the notebooks that are named, or all."""
    for name in sys.argv[1:] or sorted(path.stem for path in FOLDER.glob("*.ipynb")):
        path = FOLDER / f"{name}.ipynb"
        notebook = json.loads(path.read_text(encoding="utf-8"))
        with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
            run_notebook(notebook, name)
        path.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        print(path)


def run_notebook(notebook, name):
    """Fill in the outputs of a notebook."""
    os.environ["COLUMNS"] = "100"
    namespace = {"__name__": "__main__"}
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    for number, cell in enumerate(cells, start=1):
        cell["execution_count"] = number
        cell["outputs"] = run_cell("".join(cell["source"]), namespace, f"{name}[{number}]", number)


def run_cell(source, namespace, place, number):
    """Run a cell and return its outputs, as notebooks store them."""
    *statements, last = ast.parse(source).body
    if not isinstance(last, ast.Expr):
        statements, last = [*statements, last], None
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(ast.Module(statements, []), place, "exec"), namespace)
        value = None if last is None else eval(compile(ast.Expression(last.value), place, "eval"), namespace)
    outputs = []
    if printed.getvalue():
        outputs.append({"output_type": "stream", "name": "stdout", "text": as_lines(printed.getvalue())})
    if value is not None:
        shown = {"output_type": "execute_result", "execution_count": number, "metadata": {}}
        outputs.append({**shown, "data": describe(value)})
    return outputs


def describe(value):
    """Return a value by the types in which a notebook shows it."""
    data = {kind: getattr(value, method)() for kind, method in PICTURES.items() if hasattr(value, method)}
    data["text/plain"] = repr(value)
    return {kind: as_lines(text) for kind, text in data.items() if text is not None}


def as_lines(text):
    """Return a text as notebooks store it."""
    return text.splitlines(keepends=True)


if __name__ == "__main__":
    main()
