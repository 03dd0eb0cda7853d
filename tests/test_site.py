"""The documentation as a site: complete, with its formulas, and loading nothing from elsewhere."""

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import treewright as tw

pytest.importorskip("mkdocs", reason="the extra docs is not installed")
pytest.importorskip("math_core", reason="the extra docs is not installed")
from mkdocs.exceptions import PluginError

ROOT = Path(__file__).parents[1]


def load_hook(name):
    spec = importlib.util.spec_from_file_location(
        f"docs_hook_{name}", ROOT / "docs" / "_hooks" / f"{name}.py"
    )
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """Build the site as CI does, and return its folder."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    built = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    return folder


def test_every_public_name_has_a_heading_in_the_reference(site):
    text = "".join(page.read_text(encoding="utf-8") for page in (site / "reference").glob("*.html"))
    headings = set(re.findall(r'<h2 id="treewright\.(\w+)"', text))
    assert headings == set(tw.__all__) - {"__version__", "metrics"}


def test_parameters_described_together_have_their_own_defaults(site):
    text = (site / "reference" / "parsing.html").read_text(encoding="utf-8")
    plain = re.sub(r"\s+", " ", re.sub(r"<[^>]+>", "", text))
    parser = plain[plain.index("A constituency parser whose every step") :]
    found = re.search(r"eta \(float, default: (\S+) ?\).*? slack \(float, default: (\S+) ?\)", parser)
    options = tw.ConstituentParser()
    assert [float(value) for value in found.groups()] == [options.eta, options.slack]


def test_formulas_have_become_mathml(site):
    text = (site / "kernels.html").read_text(encoding="utf-8")
    assert text.count("<math") > 10
    assert "arithmatex" not in text


def test_the_search_index_is_part_of_the_site(site):
    assert "SubsetTreeKernel" in (site / "search" / "search_index.json").read_text(encoding="utf-8")


def test_nothing_in_the_site_is_loaded_from_outside(site):
    offline = load_hook("offline")
    assert not [found for path in site.rglob("*") for found in offline.outside_addresses(path)]


@pytest.mark.parametrize(
    ("name", "text", "is_loaded"),
    [
        ("a.html", '<script src="https://elsewhere.example/a.js"></script>', True),
        ("a.html", "<img src='//elsewhere.example/a.png'>", True),
        ("a.html", '<link rel="stylesheet" href="https://elsewhere.example/a.css">', True),
        ("a.html", "<style>p { background: url(https://elsewhere.example/a.png) }</style>", True),
        ("a.css", '@import "https://elsewhere.example/a.css";', True),
        ("a.css", "p { background: url('http://elsewhere.example/a.png') }", True),
        ("a.html", '<pre class="mermaid"></pre>', True),
        ("a.html", '<a href="https://elsewhere.example/paper.pdf">a paper</a>', False),
        ("a.html", '<script src="assets/a.js"></script><link rel="stylesheet" href="a.css">', False),
        ("a.css", "p { background: url(a.png) }", False),
    ],
)
def test_only_what_a_browser_loads_by_itself_is_found(tmp_path, name, text, is_loaded):
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    assert bool(load_hook("offline").outside_addresses(path)) == is_loaded


def test_a_formula_that_cannot_be_read_is_refused_with_its_text():
    mathml = load_hook("mathml")
    with pytest.raises(PluginError, match=r"the formula '\\\\nonsense x': "):
        mathml.on_page_content(r'<span class="arithmatex">\(\nonsense x\)</span>', None, None, None)


def test_a_numbered_formula_keeps_its_number():
    mathml = load_hook("mathml")
    html = mathml.on_page_content(r'<div class="arithmatex">\[a \tag{3}\]</div>', None, None, None)
    assert "(3)" in html
