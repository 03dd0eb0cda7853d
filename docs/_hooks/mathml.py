"""Formulas of the pages as MathML, which browsers draw by themselves: the site needs no script for them."""

import html
import re

from math_core import LatexError, LatexToMathML
from mkdocs.exceptions import PluginError

FORMULA = re.compile(
    r'<(?P<element>span|div) class="arithmatex">\\[(\[](?P<latex>.*?)\\[)\]]</(?P=element)>', re.DOTALL
)
CONVERTER = LatexToMathML(fancy_error=False)


def on_page_content(content: str, page: object, config: object, files: object) -> str:
    """Replace the formulas that the extension arithmatex has marked in a page."""
    return FORMULA.sub(convert_formula, content)


def convert_formula(match: re.Match[str]) -> str:
    """Return the MathML of a formula; those with a number, as in a paper, have it at the right."""
    latex, is_display = html.unescape(match["latex"]), match["element"] == "div"
    if r"\tag{" in latex:
        latex = rf"\begin{{equation}}{latex}\end{{equation}}"
    try:
        mathml = CONVERTER.convert_with_local_state(latex, displaystyle=is_display)
    except LatexError as error:
        raise PluginError(f"the formula {latex!r}: {error}") from error
    return f'<div class="formula">{mathml}</div>' if is_display else mathml
