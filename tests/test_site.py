"""The documentation as a site: complete, with its formulas, and loading nothing from elsewhere."""

import html
import importlib.util
import os
import re
import shutil
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
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    built = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    return folder


def test_every_public_name_has_a_heading_in_the_reference(site):
    text = "".join(page.read_text(encoding="utf-8") for page in (site / "reference").glob("*.html"))
    headings = set(re.findall(r'<h2 id="treewright\.(\w+)"', text))
    assert headings == set(tw.__all__) - {"__version__", "metrics"}


def reference_of(site, name, page):
    """Return the text of a name in the reference, without markup."""
    text = (site / "reference" / f"{page}.html").read_text(encoding="utf-8")
    entry = text.partition(f'id="treewright.{name}"')[2].partition("<h2")[0]
    return html.unescape(re.sub(r"\s+", " ", re.sub(r"<[^>]+>", "", entry)))


def test_parameters_described_together_have_their_own_defaults(site):
    text = reference_of(site, "ConstituentParser", "parsing")
    found = re.search(r"eta \(float, default: (\S+) ?\).*? slack \(float, default: (\S+) ?\)", text)
    options = tw.ConstituentParser()
    assert [float(value) for value in found.groups()] == [options.eta, options.slack]


def test_choices_of_a_parameter_are_shown_as_written(site):
    assert 'strategy ("shift-reduce", "original"' in reference_of(site, "ConstituentParser", "parsing")


def test_related_names_are_links():
    docstrings = load_hook("docstrings")
    line = docstrings.link_line("SpanParser : Neural parser.")
    assert line.startswith('- <autoref identifier="treewright.SpanParser" optional>')
    assert line.endswith(": Neural parser.")


def test_formulas_have_become_mathml(site):
    text = (site / "kernels.html").read_text(encoding="utf-8")
    assert text.count("<math") > 10
    assert "arithmatex" not in text


def test_the_search_index_is_part_of_the_site(site):
    assert "SubsetTreeKernel" in (site / "search" / "search_index.json").read_text(encoding="utf-8")


def test_the_search_index_is_also_a_script_for_pages_read_from_disk(site):
    assert (site / "search" / "search_index.js").read_text(encoding="utf-8").startswith("var __index = {")
    assert "iframe-worker.js" in (site / "index.html").read_text(encoding="utf-8")


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("chromedriver"), reason="there is no chromedriver on the path")
def test_the_search_works_from_disk(site, tmp_path):
    webdriver = pytest.importorskip("selenium.webdriver", reason="the extra test is not installed")
    from selenium.webdriver.support.ui import WebDriverWait

    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or shutil.which("google-chrome")
    for flag in ("--headless=new", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path}"):
        options.add_argument(flag)
    browser = webdriver.Chrome(options=options, service=webdriver.ChromeService(shutil.which("chromedriver")))
    try:
        browser.get((site / "quickstart.html").as_uri() + "?q=SubsetTreeKernel")
        browser.execute_script("document.querySelector('[data-md-component=search-query]').focus()")
        results = "return document.querySelectorAll('.md-search-result__link').length"
        WebDriverWait(browser, 120).until(lambda _: browser.execute_script(results))
    finally:
        browser.quit()


def test_tutorials_show_their_stored_outputs(site):
    page = (site / "tutorials" / "why-this-tree.html").read_text(encoding="utf-8")
    assert page.count('class="output') > 3
    assert "<svg" in page
    assert (site / "tutorials" / "why-this-tree.ipynb").exists()


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
    page = mathml.on_page_content(r'<div class="arithmatex">\[a \tag{3}\]</div>', None, None, None)
    assert "(3)" in page


def test_no_entry_of_the_reference_is_empty(site):
    for page in sorted((site / "reference").glob("*.html")):
        text = page.read_text(encoding="utf-8")
        assert not re.search(r'<div class="doc-md-description">\s*</div>', text), page.name


def test_the_reference_has_inherited_methods(site):
    text = (site / "reference" / "parsing.html").read_text(encoding="utf-8")
    for name in ("fit", "predict", "kbest", "save"):
        for kind in ("ConstituentParser", "DependencyParser", "LeftCornerParser", "SpanParser"):
            assert f'id="treewright.{kind}.{name}"' in text
