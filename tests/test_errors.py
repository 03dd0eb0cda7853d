"""Errors refer to what to do, in sections of the documentation that exist."""

import io
import pickle
import re
import traceback
from pathlib import Path

import pytest

from treewright import read_conllu
from treewright.errors import TROUBLESHOOTING, ClusterError, FormatError, InputError

ROOT = Path(__file__).parents[1]
SECTION_OF_PAGE = re.compile(r"\{TROUBLESHOOTING\}#([\w-]+)")
OTHER_PAGE = re.compile(r'help = "([\w/-]+\.md#[\w-]+)"')


def find_targets():
    """Return all pages with sections that errors refer to."""
    texts = [path.read_text(encoding="utf-8") for path in (ROOT / "src" / "treewright").rglob("*.py")]
    found = {f"{TROUBLESHOOTING}#{name}" for text in texts for name in SECTION_OF_PAGE.findall(text)}
    return sorted(found | {target for text in texts for target in OTHER_PAGE.findall(text)})


def find_sections(page):
    """Return the anchors of the sections of a page."""
    titles = re.findall(r"^#+ (.+)$", (ROOT / "docs" / page).read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"\W+", "-", title.lower()).strip("-") for title in titles}


def test_there_are_targets_of_every_kind():
    sections = {target.partition("#")[2] for target in find_targets()}
    assert sections >= {"checkpoints", "downloads", "files", "memory", "models", "tags"}
    assert ClusterError.help in find_targets()


@pytest.mark.parametrize("target", find_targets())
def test_errors_refer_to_sections_that_exist(target):
    page, _, section = target.partition("#")
    assert section in find_sections(page)


def test_a_command_names_the_section_at_the_end_of_its_line(fail, tmp_path):
    source = tmp_path / "latin1.conllu"
    source.write_bytes(b"1\tM\xe4ry\t_\t_\t_\t_\t0\troot\t_\t_\n\n")
    message = fail("evaluate", source, source)
    assert message.endswith("; expected UTF-8 (see docs/howto/troubleshooting.md#files)")


def test_errors_that_say_everything_name_no_section():
    with pytest.raises(FormatError) as caught:
        read_conllu(io.StringIO("1\tMary\n\n"))
    assert caught.value.help is None
    assert not hasattr(caught.value, "__notes__")


def test_tracebacks_name_the_section():
    error = InputError("the words have no tags", help=f"{TROUBLESHOOTING}#tags")
    shown = traceback.format_exception_only(error)
    assert shown[-1] == "see docs/howto/troubleshooting.md#tags\n"


@pytest.mark.parametrize(
    "error",
    [
        InputError("a message", help="howto/page.md#a"),
        FormatError("a.conllu", 3, "a", "b", help="howto/page.md#a"),
        ClusterError("a message"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_errors_keep_their_section_between_processes(error):
    copy = pickle.loads(pickle.dumps(error))
    assert (str(copy), copy.help, copy.__notes__) == (str(error), error.help, error.__notes__)
