"""Files for constituency parsers: treebanks to learn from, and parsing whatever the size of the input."""

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Protocol, TypeAlias, runtime_checkable

from treewright._validate import check_choice
from treewright.data.bracketed import format_line
from treewright.data.consttree import LABEL, ConstTree, escape
from treewright.data.deptree import DepTree
from treewright.data.formats import open_told
from treewright.errors import InputError, quote
from treewright.parsing.conllu_files import iter_text, parse_batches
from treewright.parsing.constituent.parser import Parse
from treewright.parsing.resumable_output import Unfinished, name_work, write_results
from treewright.persist import State, identify
from treewright.scale import Client
from treewright.tagging.tagger import Tagger

BATCH_SIZE = 100
SENT_TOGETHER = 50
"""Sentences, or trees of theirs, that a worker of a cluster parses at a time."""

Sentence: TypeAlias = ConstTree | DepTree


@runtime_checkable
class TreeParser(Protocol):
    """What finds constituency trees: a parser, or a reranker of its trees."""

    tags: str
    tagger_: Tagger | None

    @property
    def needs_tags(self) -> bool:
        """Whether sentences must bring tags."""

    def get_state(self) -> State:
        """Return all that the parser is."""

    def kbest(self, sentences: Sequence[Sentence], k: int, *, n_jobs: int | None) -> list[list[Parse]]:
        """Return the best trees of each sentence."""


def parse_to_brackets(
    parser: TreeParser,
    source: str,
    target: str,
    *,
    tags: str | None = None,
    kbest: int = 1,
    language: str | None = None,
    n_jobs: int = 1,
    checkpoint: str | os.PathLike[str] | None = None,
    client: Client | None = None,
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
    n_jobs : int
        Threads; with a client, of each of its workers.
    checkpoint : path, optional
        A folder in which what is done is kept, for files alone. If it exists, parsing goes on from it, to the
        same file.
    client : distributed.Client, optional
        A cluster that parses; sentences are read and written here.
    """
    _choose_tags(parser, tags)
    if language is not None and parser.needs_tags:
        raise InputError(
            f"{source} is plain text, which has no tags; expected a parser with a tagger of its own "
            "(--tags predicted in training)"
        )
    with _open_sentences(source, language) as sentences:
        checked = _checked(sentences, source, needs_tags=parser.needs_tags)
        unfinished = None
        if checkpoint is not None:
            unfinished = Unfinished(
                checkpoint, target, partial(_name_work, parser, (tags, kbest, language), source)
            )
            checked = unfinished.skip(checked)
        size = max(1, (BATCH_SIZE if client is None else SENT_TOGETHER) // kbest)
        found = parse_batches(partial(parser.kbest, k=kbest, n_jobs=n_jobs), checked, size, client)
        write_results(found, target, _show_best if kbest == 1 else _show_list, unfinished)


def _name_work(parser: TreeParser, options: tuple[object, ...], source: str) -> str:
    return name_work(identify(parser.get_state()), options, source)


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


def _show_best(number: int, parses: list[Parse]) -> str:
    return format_line(parses[0].tree)


def _show_list(number: int, parses: list[Parse]) -> str:
    ranked = enumerate(parses, start=1)
    return "".join(f"{number}\t{rank}\t{parse.score:.4f}\t{parse.tree}\n" for rank, parse in ranked)
