"""Input of models: trees, lists of words, or lists of (word, tag) pairs.

All models read their input with this module, which raises one-line errors for anything else.
"""

import reprlib
from collections.abc import Iterable, Mapping, Sequence, Set
from itertools import chain
from typing import Any, Literal, TypeAlias

from treewright._naming import setting
from treewright.data.consttree import ConstTree, unescape_word
from treewright.data.deptree import DepTree
from treewright.data.descriptions import universal_tags
from treewright.errors import TROUBLESHOOTING, InputError, quote

SentenceLike: TypeAlias = DepTree | ConstTree | Sequence[str] | Sequence[tuple[str, str | None]]
"""A sentence: a tree (only its words and tags are used), a list of words, or a list of (word, tag) pairs."""
TagColumn: TypeAlias = Literal["upos", "xpos"]

SENTENCE = "a tree, a list of words or a list of (word, tag) pairs"
SENTENCES = f"a list of sentences, each {SENTENCE}"
WORD = "a word or a tuple (word, tag)"


def list_sentences(sentences: object, reader: object) -> list[Any]:
    """Return sentences as a list; raise `InputError` if they are text, a single sentence, or of another type.

    Parameters
    ----------
    sentences : iterable of SentenceLike
        The sentences. Their content is inspected only to recognise a single sentence.
    reader : object
        The model that reads the sentences, for error messages.
    """
    if isinstance(sentences, str):
        raise InputError(f"the sentences are {_text(sentences, reader)}; expected {SENTENCES}")
    if isinstance(sentences, DepTree | ConstTree):
        raise InputError(f"one tree was given, {_shorten(sentences)}; expected a list of sentences: [tree]")
    if not isinstance(sentences, Iterable) or isinstance(sentences, bytes | bytearray | Mapping | Set):
        reads_text = getattr(reader, "own_tokenizer", None) is not None
        expected = f"a text, or {SENTENCES}" if reads_text else SENTENCES
        raise InputError(f"the sentences are of type {type(sentences).__name__}; expected {expected}")
    found = sentences if isinstance(sentences, list) else list(sentences)
    if found and isinstance(found[0], str | tuple) and _is_one_sentence(found):
        raise InputError(f"one sentence was given, {_shorten(found)}; expected a list of sentences: [[...]]")
    return found


def _is_one_sentence(given: Sequence[object]) -> bool:
    """Return whether the items are words or (word, tag) pairs rather than sentences."""
    if all(isinstance(each, str) for each in given):
        return not any(len(str(each).split()) > 1 for each in given)  # several words each: texts
    return all(isinstance(each, tuple) and _is_pair(each) for each in given)


def _is_pair(given: tuple[object, ...]) -> bool:
    return len(given) == 2 and isinstance(given[0], str) and isinstance(given[1], str | None)


def read_words(sentence: Any, number: int, reader: object) -> tuple[list[str], list[str]]:  # noqa: ANN401
    """Return the words and tags of sentence `number` (from 1); a missing tag is ``"_"``."""
    if isinstance(sentence, str):
        raise InputError(f"sentence {number} is {_text(sentence, reader)}; expected {SENTENCE}")
    if not isinstance(sentence, Sequence) or isinstance(sentence, bytes | bytearray):
        raise InputError(f"sentence {number} is of type {type(sentence).__name__}; expected {SENTENCE}")
    words: list[str] = []
    tags: list[str] = []
    for at, each in enumerate(sentence, start=1):
        if isinstance(each, str):
            word, tag = each, None
        elif isinstance(each, tuple) and _is_pair(each):
            word, tag = each
        else:
            found = f"word {at} is {_shorten(each)} of type {type(each).__name__}"
            raise InputError(f"sentence {number}: {found}; expected {WORD}")
        if not word:
            raise InputError(f"sentence {number}: word {at} is empty; expected {WORD}")
        words.append(word)
        tags.append(tag or "_")
    return words, tags


def read_trees(sentences: object, reader: object, *, tag_column: TagColumn = "upos") -> list[DepTree]:
    """Return sentences as dependency trees; trees are returned unchanged.

    Parameters
    ----------
    sentences : iterable of SentenceLike
        The sentences.
    reader : object
        The model that reads the sentences, for error messages.
    tag_column : {"upos", "xpos"}
        Column for the tags of (word, tag) pairs; the tags of a `ConstTree` always become XPOS.
    """
    found = list_sentences(sentences, reader)
    if all(isinstance(sentence, DepTree) for sentence in found):
        return found
    return [_as_tree(sentence, number, reader, tag_column) for number, sentence in enumerate(found, start=1)]


def _as_tree(sentence: Any, number: int, reader: object, tag_column: TagColumn) -> DepTree:  # noqa: ANN401
    if isinstance(sentence, DepTree):
        return sentence
    if isinstance(sentence, ConstTree):
        tree = sentence.without_traces()
        words = [] if tree is None else [unescape_word(word) for word in tree.words()]
        return DepTree(words, xpos=(tree.tags() or None) if tree is not None else None)
    words, tags = read_words(sentence, number, reader)
    return DepTree(words, upos=tags) if tag_column == "upos" else DepTree(words, xpos=tags)


def check_tags(sentences: Sequence[Any], trees: Sequence[DepTree], reader: Any) -> None:  # noqa: ANN401
    """Raise `InputError` if sentences lack the tags that a model needs.

    In a sentence given as a list, every word must have a tag. In trees, tags may be missing, but at least one
    word in at least one of the trees must have a tag.

    Parameters
    ----------
    sentences : sequence of SentenceLike
        The sentences in the form in which they were given.
    trees : sequence of DepTree
        The same sentences as trees.
    reader : DependencyAnnotator
        The model; its attributes give the tags of the training set and their column.
    """
    for number, (sentence, tree) in enumerate(zip(sentences, trees, strict=True), start=1):
        if sentence is not tree:
            tags, known = _check_all_tagged(tree, number, reader), set(reader.known_tags)
            if tags and not (universal_tags() | known).intersection(tags):
                name = type(reader).__name__
                seen = ", ".join(sorted(known - {"_"})[:8])
                raise InputError(
                    f"sentence {number} has the tag {quote(tags[0])}, and none of its tags occurred in the "
                    f"training data of this {name}; expected {reader.tag_column.upper()} tags: {seen}, ...",
                    help=f"{TROUBLESHOOTING}#tags",
                )
    if any(tag != "_" for tree in trees for tag in chain(tree.upos, tree.xpos)):
        return
    for number, tree in enumerate(trees, start=1):
        if len(tree):
            raise missing_tags(f"sentence {number} has no tags", reader)


def _check_all_tagged(tree: DepTree, number: int, reader: object) -> list[str]:
    """Return the tags of a sentence; raise `InputError` if one is missing."""
    tags = [xpos if upos == "_" else upos for upos, xpos in zip(tree.upos, tree.xpos, strict=True)]
    missing = tags.count("_")
    if missing == len(tags) > 0:
        raise missing_tags(f"sentence {number} has no tags", reader)
    if missing:
        at = tags.index("_")
        raise missing_tags(f"sentence {number}: word {at + 1}, {quote(tree.words[at])}, has no tag", reader)
    return tags


def missing_tags(
    found: str, reader: object, where: str = "", *, expected: str = "(word, tag) pairs, trees with tags"
) -> InputError:
    """Return the error for words without tags."""
    return InputError(
        f"{found}{where}, but this {type(reader).__name__} needs tags; expected {expected}{where}, or a "
        f"model trained with {setting('tags', 'predicted')}",
        help=f"{TROUBLESHOOTING}#tags",
    )


def _text(text: str, reader: object) -> str:
    return f"the text {quote(text, 40)}, but a {type(reader).__name__} reads words (a Pipeline reads text)"


def _shorten(given: object) -> str:
    shown = reprlib.repr(given) if isinstance(given, list | tuple) else repr(given)
    return shown if len(shown) <= 80 else shown[:77] + "..."
