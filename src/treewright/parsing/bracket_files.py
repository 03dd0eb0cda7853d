"""Files for constituency parsers: treebanks to learn from, and parsing whatever the size of the input."""

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Protocol, TypeAlias, runtime_checkable

from treewright._validate import check_choice
from treewright.data.bracketed import iter_brackets, write_brackets
from treewright.data.consttree import LABEL, ConstTree, escape
from treewright.data.deptree import DepTree
from treewright.data.files import open_target
from treewright.data.formats import open_told
from treewright.errors import InputError, quote
from treewright.metrics.parseval import sentence_length
from treewright.parsing.constituent import Parse
from treewright.parsing.files import in_batches, iter_text
from treewright.parsing.tagger import Tagger

BATCH_SIZE = 500

Sentence: TypeAlias = ConstTree | DepTree


@runtime_checkable
class TreeParser(Protocol):
    """What finds constituency trees: a parser, or a reranker of its trees."""

    jobs: int
    tags: str
    tagger_: Tagger | None

    @property
    def needs_tags(self) -> bool:
        """Whether sentences must bring tags."""

    def kbest(self, sentences: Sequence[Sentence], k: int) -> list[list[Parse]]:
        """Return the best trees of each sentence."""


def read_trees(source: str | os.PathLike[str], *, max_length: int | None = None) -> list[ConstTree]:
    """Read trees to learn from, of which there must be some.

    Parameters
    ----------
    source : path, or "-"
    max_length : int, optional
        Only those of up to so many words, punctuation counted, traces not.
    """
    limit = max_length or float("inf")
    trees = [tree for tree in iter_brackets(source) if sentence_length(tree) <= limit]
    if not trees:
        which = f" of up to {max_length} words" if max_length else ""
        raise InputError(f"{os.fspath(source)} has no sentences{which}; expected at least one")
    return trees


def parse_to_brackets(
    parser: TreeParser,
    source: str,
    target: str,
    *,
    tags: str | None = None,
    kbest: int = 1,
    language: str | None = None,
    jobs: int = 1,
) -> None:
    """Parse a file and write a tree a line.

    Parameters
    ----------
    parser : ConstituentParser, LeftCornerParser or another TreeParser
    source, target : str
        Files, or ``"-"``. Of brackets the words and tags are taken, of CoNLL-U the words and XPOS.
    tags : {"gold", "predicted"}, optional
        Whether the tags of `source` are taken or those of the parser's own tagger; by default what it was
        trained with.
    kbest : int
        Trees a sentence; if there are more than one, each line has the number of the sentence, the rank, the
        score and the tree, with tabs between them.
    language : str, optional
        `source` is plain text in this language, as spaCy names it.
    jobs : int
        Threads.
    """
    _choose_tags(parser, tags)
    if language is not None and parser.needs_tags:
        raise InputError(
            f"{source} is plain text, which has no tags; expected a parser with a tagger of its own "
            "(--tags predicted in training)"
        )
    parser.jobs = jobs
    with _open_sentences(source, language) as sentences:
        found = _parsed(parser, _checked(sentences, source, needs_tags=parser.needs_tags), kbest)
        if kbest == 1:
            write_brackets((parses[0].tree for parses in found), target)
        else:
            _write_lists(found, target)


def _choose_tags(parser: TreeParser, tags: str | None) -> None:
    if tags is None:
        return
    check_choice("tags", tags, ("gold", "predicted"))
    if tags == "predicted" and parser.tagger_ is None:
        raise InputError("the parser has no tagger of its own; expected one (--tags predicted in training)")
    parser.tags = tags


@contextmanager
def _open_sentences(source: str, language: str | None) -> Iterator[Iterator[Sentence]]:
    if language is not None:
        yield iter_text(source, language)
        return
    with open_told(source) as (form, stream):
        if form.kind == "propositions":
            raise InputError(f"{source} looks like {form.name}; expected brackets or CoNLL-U")
        yield form.read(stream) if form.kind == "constituents" else form.read(stream, require_heads=False)


def _checked(sentences: Iterable[Sentence], source: str, *, needs_tags: bool) -> Iterator[Sentence]:
    """Hand on the sentences if they have what the parser needs and brackets can hold."""
    for number, sentence in enumerate(sentences, start=1):
        if isinstance(sentence, ConstTree):
            yield sentence
        else:
            _check_words(sentence, f"{source}: sentence {number}", needs_tags=needs_tags)
            yield _escaped(sentence)


def _check_words(sentence: DepTree, place: str, *, needs_tags: bool) -> None:
    if not len(sentence):
        raise InputError(f"{place} has no words; expected at least one")
    if needs_tags and set(sentence.xpos) == {"_"}:
        raise InputError(
            f"{place} has no tags in XPOS; expected some, or a parser with a tagger of its own "
            "(--tags predicted in training)"
        )
    for text in (*sentence.words, *sentence.xpos):
        if not LABEL.fullmatch(text):
            raise InputError(f"{place} has {quote(text)}; expected words and tags without white space")


def _escaped(sentence: DepTree) -> DepTree:
    """Return words and tags as treebanks in brackets write them, which is how the parser knows them."""
    return DepTree([escape(word) for word in sentence.words], xpos=[escape(tag) for tag in sentence.xpos])


def _parsed(parser: TreeParser, sentences: Iterable[Sentence], kbest: int) -> Iterator[list[Parse]]:
    for batch in in_batches(sentences, max(1, BATCH_SIZE // kbest)):
        yield from parser.kbest(batch, kbest)


def _write_lists(lists: Iterable[list[Parse]], target: str) -> None:
    with open_target(target) as stream:
        for number, parses in enumerate(lists, start=1):
            for rank, parse in enumerate(parses, start=1):
                stream.write(f"{number}\t{rank}\t{parse.score:.4f}\t{parse.tree}\n")
