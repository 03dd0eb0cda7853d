"""Draw sentences at random from all texts that users read, to be judged by a reader.

    python tools/draw_sentences.py [N] [--seed SEED] [--from help errors docstrings docs] [--under PLACE]

``help`` stands for the help texts of commands, arguments and options, as ``--help`` shows them. ``errors``
are error messages, warnings and log messages in the code, with expressions in braces. ``docstrings`` are
those of the package, without examples and the names of parameters. ``docs`` are the README, the pages and the
text cells of the notebooks, without code, tables and formulas. The same number is drawn from each source.
Each line has the source, the place and the sentence. The same seed draws the same sentences.
"""

import argparse
import ast
import inspect
import json
import random
import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "treewright"
RAISED = ("Error", "Warning", "fail", "error", "missing_tags", "warn", "report")
"""Endings of the names of functions whose arguments are messages."""
SENTENCE = re.compile(r"(?<=[.!?:])\s+(?=[A-Z`\"'(])")
LISTED = re.compile(r"^(?:[-*] |\d+\. )")
HEADER = re.compile(r"^[\w*., ]+( : .*)?$")
SECTIONS = {
    "Parameters",
    "Returns",
    "Attributes",
    "Raises",
    "Yields",
    "See Also",
    "Notes",
    "Examples",
    "Warns",
}
MIN_WORDS = 4
SOURCES = ("help", "errors", "docstrings", "docs")


def main():
    """Print sentences."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("n", nargs="?", type=int, default=100, help="number of sentences")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--from", dest="sources", nargs="+", choices=SOURCES, default=SOURCES)
    parser.add_argument("--under", default="", help="only places that contain this text")
    options = parser.parse_args()
    rng = random.Random(options.seed)
    readers = {"help": read_help, "errors": read_errors, "docstrings": read_docstrings, "docs": read_pages}
    share = -(-options.n // len(options.sources))
    drawn = []
    for source in options.sources:
        found = sorted({(place, text) for place, text in readers[source]() if options.under in place})
        drawn += [(source, *each) for each in rng.sample(found, min(share, len(found)))]
    for source, place, text in drawn[: options.n]:
        print(f"{source}\t{place}\t{text}")


def read_help():
    """Yield the help texts of all commands, with the command and the option."""
    import typer.main

    from treewright.cli import app

    yield from walk_commands(typer.main.get_command(app), "treewright")


def walk_commands(command, name):
    """Yield the help texts of a command and of all below it."""
    yield from ((name, each) for each in split_text(inspect.cleandoc(command.help or "")))
    for option in command.params:
        shown = max(option.opts, key=len)
        yield from ((f"{name} {shown}", each) for each in split_text(getattr(option, "help", None) or ""))
    if hasattr(command, "list_commands"):
        for inner in command.list_commands(None):
            is_lazy = inner in getattr(command, "entries", ())
            loaded = command.load(inner) if is_lazy else command.get_command(None, inner)
            yield from walk_commands(loaded, f"{name} {inner}")


def read_errors():
    """Yield the messages that code raises, warns of or reports."""
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and ast.unparse(node.func).endswith(RAISED):
                for argument in node.args:
                    text = spell(argument)
                    if text and is_sentence(text):
                        yield f"{path.relative_to(ROOT)}:{node.lineno}", text


def spell(node):
    """Return the text of a string in code, with expressions in braces; None for anything else."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        parts = (
            each.value if isinstance(each, ast.Constant) else f"{{{ast.unparse(each.value)}}}"
            for each in node.values
        )
        return " ".join("".join(map(str, parts)).split())
    return None


def read_docstrings():
    """Yield the sentences of docstrings, those of attributes included."""
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            body = getattr(node, "body", None)
            for each in body if isinstance(body, list) else ():
                is_text = isinstance(each, ast.Expr) and isinstance(each.value, ast.Constant)
                if is_text and isinstance(each.value.value, str):
                    place = f"{path.relative_to(ROOT)}:{each.lineno}"
                    for paragraph in split_docstring(inspect.cleandoc(each.value.value)):
                        yield from ((place, sentence) for sentence in split_text(paragraph))


def split_docstring(text):
    """Yield the paragraphs of a docstring without examples, titles and the names of parameters."""
    lines, in_section = [], False
    for line in [*text.splitlines(), ""]:
        stripped = line.strip()
        is_rule = bool(stripped) and set(stripped) == {"-"}
        in_section = in_section or is_rule
        is_name = in_section and line == stripped and HEADER.match(line)
        if not stripped or is_rule or is_name or stripped in SECTIONS or stripped.startswith((">>>", "...")):
            yield " ".join(lines)
            lines = []
        else:
            lines.append(stripped)


def read_pages():
    """Yield the sentences of the README, the pages and the notebooks."""
    for path in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]:
        yield from read_markdown(str(path.relative_to(ROOT)), path.read_text(encoding="utf-8"))
    for path in sorted((ROOT / "docs").rglob("*.ipynb")):
        for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
            if cell["cell_type"] == "markdown":
                yield from read_markdown(str(path.relative_to(ROOT)), "".join(cell["source"]))


def read_markdown(place, text):
    """Yield the sentences of a page without code, tables, titles, formulas and comments."""
    text = re.sub(r"^(```|~~~).*?^\1.*?$", "", text, flags=re.MULTILINE | re.DOTALL)
    text = re.sub(r"<!--.*?-->|\$\$.*?\$\$", "", text, flags=re.DOTALL)
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", text)
    for paragraph in re.split(r"\n\s*\n|\n(?=\s*(?:[-*] |\d+\. ))", text):
        if not paragraph.lstrip().startswith(("|", "#", ":::", "<", "!!!", "    ")):
            body = LISTED.sub("", " ".join(paragraph.split()))
            yield from ((place, sentence) for sentence in split_text(body))


def split_text(text):
    """Yield the sentences of a paragraph."""
    for sentence in SENTENCE.split(" ".join(text.split())):
        if is_sentence(sentence):
            yield sentence.strip()


def is_sentence(text):
    """Return whether a text has enough words to be judged."""
    return len(re.findall(r"[^\W\d_]{2,}", text)) >= MIN_WORDS


if __name__ == "__main__":
    main()
