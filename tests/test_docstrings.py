"""Docstrings of public names: examples print what they show, and every part and parameter is described."""

import ast
import dataclasses
import doctest
import inspect
import itertools
import re
import sys
import textwrap
from pathlib import Path

import pytest

import treewright as tw


def list_public():
    """Yield public classes and functions with their names, those of public modules included."""
    for name in tw.__all__:
        found = getattr(tw, name)
        if inspect.ismodule(found):
            for inner in getattr(found, "__all__", None) or vars(found):
                member = getattr(found, inner)
                is_own = getattr(member, "__module__", "").startswith("treewright.")
                if is_own and callable(member) and not inner.startswith("_"):
                    yield f"{name}.{inner}", member
        elif callable(found):
            yield name, found


MKDOCS = Path(__file__).parents[1] / "mkdocs.yml"
PUBLIC = dict(list_public())
UNFINISHED: set[str] = set()
"""Names that still lack descriptions, examples or related names."""
SECTION = re.compile(r"^(?P<title>[A-Z][A-Za-z ]+)\n-+\n", re.MULTILINE)
ENTRY = re.compile(r"^(?P<names>[*\w]+(?:, [*\w]+)*)(?: : .*)?\n(?=    )", re.MULTILINE)
RELATED = re.compile(r"^(?P<names>[\w.]+(?:, [\w.]+)*) : ", re.MULTILINE)
WITH_EXAMPLES = [name for name, found in PUBLIC.items() if ">>>" in (inspect.getdoc(found) or "")]


@pytest.mark.slow_cases
@pytest.mark.parametrize("name", WITH_EXAMPLES)
def test_examples_in_docstrings_print_what_they_show(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = PUBLIC[name]
    names = {**vars(sys.modules[found.__module__]), "tw": tw}
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    output = []
    for test in doctest.DocTestFinder(recurse=False).find(found, name, globs=names):
        runner.run(test, out=output.append)
    assert not runner.failures, "".join(output)


def split_sections(found):
    """Return the sections of a docstring by their titles; the summary has the title ""."""
    parts = SECTION.split((inspect.getdoc(found) or "") + "\n")
    return {"": parts[0], **dict(zip(parts[1::2], parts[2::2], strict=True))}


def list_described(sections):
    """Return the parameters and attributes that have a description."""
    text = "\n".join(sections.get(title, "") for title in ("Parameters", "Attributes"))
    return {name.lstrip("*") for match in ENTRY.finditer(text) for name in match["names"].split(", ")}


def list_commented(found):
    """Return the fields of a record that are followed by a docstring of their own."""
    if not is_record(found):
        return set()
    body = ast.parse(textwrap.dedent(inspect.getsource(found))).body[0].body
    return {
        field.target.id
        for field, comment in itertools.pairwise(body)
        if isinstance(field, ast.AnnAssign) and isinstance(comment, ast.Expr)
    }


def is_record(found):
    return inspect.isclass(found) and (dataclasses.is_dataclass(found) or issubclass(found, tuple))


def list_parameters(found):
    try:
        return [name for name in inspect.signature(found).parameters if not name.startswith("_")]
    except ValueError:  # an exception that has only the parameters of Python's own
        return []


@pytest.mark.parametrize("name", PUBLIC)
def test_summaries_have_at_most_two_lines(name):
    summary = split_sections(PUBLIC[name])[""].split("\n\n")[0].strip()
    assert summary.endswith((".", ":"))
    assert summary.count("\n") < 2


@pytest.mark.parametrize("name", sorted(set(PUBLIC) - UNFINISHED))
def test_every_parameter_is_described_where_it_is_used(name):
    found = PUBLIC[name]
    sections = split_sections(found)
    described = list_described(sections) | list_commented(found)
    assert set(list_parameters(found)) <= described
    assert "As those of" not in (inspect.getdoc(found) or "")


def list_methods():
    """Yield the methods that the reference shows, by class and name."""
    hidden = [
        each.removeprefix("!") for each in re.findall(r'- "(!\^.+)"', MKDOCS.read_text(encoding="utf-8"))
    ]
    for name, found in PUBLIC.items():
        if not inspect.isclass(found):
            continue
        own = {
            inner
            for base in found.__mro__
            if base.__module__.startswith("treewright.")
            for inner in vars(base)
        }
        for inner in sorted(own):
            function = getattr(getattr(found, inner), "__func__", getattr(found, inner))
            if inspect.isfunction(function) and not any(re.search(each, inner) for each in hidden):
                yield f"{name}.{inner}", function


METHODS = dict(list_methods())


@pytest.mark.parametrize("name", METHODS)
def test_every_parameter_of_a_method_is_described(name):
    found = METHODS[name]
    wanted = set(list_parameters(found)) - {"self", "cls"}
    assert wanted <= list_described(split_sections(found))
    assert not re.search(
        r"(?i)\bas (those of|in) `|for the parameters, see|\bas `[\w.]+` does", inspect.getdoc(found)
    )


@pytest.mark.parametrize("name", sorted(set(PUBLIC) - UNFINISHED))
def test_every_name_has_an_example_and_related_names_that_exist(name):
    sections = split_sections(PUBLIC[name])
    assert ">>>" in sections["Examples"]
    related = [
        each for match in RELATED.finditer(sections["See Also"]) for each in match["names"].split(", ")
    ]
    assert related
    for other in related:
        assert other in PUBLIC or other.rpartition(".")[0] in PUBLIC, other
