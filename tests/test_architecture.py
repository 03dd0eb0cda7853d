"""The rooms of the package and the directions in which they may look."""

import ast
import re
from collections import Counter
from pathlib import Path

import pytest

import treewright as tw

PACKAGE = Path(tw.__file__).parent
DOCS = Path(__file__).parents[1] / "docs"

LEVELS = [
    ["_version", "_cache", "_cleanup", "_naming", "progress"],
    ["native", "errors", "_optional", "_typing", "_validate"],
    ["data"],
    ["model", "scale", "drawing"],
    ["checkpoint"],
    ["metrics"],
    ["kernels", "learn"],
    ["mining"],
    ["annotation"],
    ["tagging"],
    ["parsing"],
    ["rerank", "srl"],
    ["pipeline"],
    ["report"],
    ["web"],
    ["commands", "spacy_component"],
    ["cli"],
    ["__main__"],
    ["__init__"],
]
"""A room imports rooms of lower levels only; those of one level do not know each other."""
SHARED_ON_THEIR_LEVEL = {("_optional", "errors"), ("_validate", "errors"), ("_validate", "_typing")}

SHOWN_IN_NOTEBOOKS = Path("data", "notebook.py")
"""Where trees ask for their pictures, which are made of trees."""

MODULES = sorted(PACKAGE.rglob("*.py"))


def room_of(module):
    return module.relative_to(PACKAGE).with_suffix("").parts[0]


def level_of(room):
    return next(level for level, rooms in enumerate(LEVELS) if room in rooms)


def imported_names(module):
    for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield "." * node.level + (node.module or "")


def imported_rooms(module):
    for name in imported_names(module):
        if name.startswith("treewright."):
            yield name.split(".")[1]


@pytest.mark.parametrize("module", MODULES, ids=lambda module: str(module.relative_to(PACKAGE)))
def test_imports_point_to_lower_levels(module):
    room = room_of(module)
    if module.relative_to(PACKAGE) == SHOWN_IN_NOTEBOOKS:
        return
    for other in imported_rooms(module):
        allowed = other == room or level_of(other) < level_of(room) or (room, other) in SHARED_ON_THEIR_LEVEL
        assert allowed, f"{room} imports {other}"


def test_native_knows_nothing_of_the_package_but_the_cache_folder():
    rooms = {room for module in MODULES if room_of(module) == "native" for room in imported_rooms(module)}
    assert rooms <= {"native", "_cache"}


def test_only_native_imports_numba():
    users = {
        room_of(module) for module in MODULES for name in imported_names(module) if name.startswith("numba")
    }
    assert users == {"native"}


def test_no_import_is_relative():
    assert not [module for module in MODULES for name in imported_names(module) if name.startswith(".")]


def test_the_library_does_not_print():
    printing = {
        room_of(module)
        for module in MODULES
        for node in ast.walk(ast.parse(module.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print"
    }
    assert printing <= {"cli", "commands", "__main__"}


def test_no_class_name_is_used_twice():
    names = Counter(
        node.name
        for module in MODULES
        for node in ast.walk(ast.parse(module.read_text(encoding="utf-8")))
        if isinstance(node, ast.ClassDef)
    )
    assert [name for name, count in names.items() if count > 1] == []


def test_public_names_are_those_of_the_documentation():
    text = (DOCS / "api.md").read_text(encoding="utf-8")
    documented = re.findall(r"^\| `(\w+)", text, re.MULTILINE)
    assert sorted(documented) == sorted(set(tw.__all__) - {"__version__"})


def test_every_public_name_can_be_imported_and_says_what_it_is():
    for name in set(tw.__all__) - {"__version__"}:
        assert getattr(tw, name).__doc__, name


def test_every_compiled_module_has_a_slow_twin():
    compiled, twins = (
        {path.relative_to(folder) for path in folder.rglob("*.py") if path.name != "__init__.py"}
        for folder in (PACKAGE / "native", Path(__file__).parent / "oracle")
    )
    about_compiling = {Path("compiling.py"), Path("code_cache.py"), Path("code_libraries.py")}
    assert compiled - about_compiling <= twins
