"""What models take as sentences: trees, lists of words, or lists of words with tags.

All models read what they are given through this module, and refuse anything else in one line.
"""

import reprlib
from collections.abc import Iterable, Mapping, Sequence, Set
from typing import Any, Literal, TypeAlias

from treewright._naming import setting
from treewright.data.consttree import ConstTree, unescape_word
from treewright.data.deptree import DepTree
from treewright.data.descriptions import universal_tags
from treewright.errors import InputError, quote

SentenceLike: TypeAlias = DepTree | ConstTree | Sequence[str] | Sequence[tuple[str, str | None]]
"""A sentence: a tree, of which words and tags alone are looked at, words, or words with their tags."""
TagColumn: TypeAlias = Literal["upos", "xpos"]

SENTENCE = "a tree, a list of words or a list of (word, tag) pairs"
SENTENCES = f"a list of sentences, each {SENTENCE}"
WORD = "a word or a tuple (word, tag)"


def list_sentences(sentences: object, reader: object) -> list[Any]:
    """Return sentences as a list; refuse text, a single sentence, and what is no list.

    Parameters
    ----------
    sentences : iterable of SentenceLike
        The sentences themselves are not looked at yet, but for what tells a list of them from a single one.
    reader : object
        The model that reads them, for error messages.
    """
    if isinstance(sentences, str):
        raise InputError(f"the sentences are {_text(sentences, reader)}; expected {SENTENCES}")
    if isinstance(sentences, DepTree | ConstTree):
        raise InputError(f"one tree was given, {_shorten(sentences)}; expected a list of sentences: [tree]")
    if not isinstance(sentences, Iterable) or isinstance(sentences, bytes | bytearray | Mapping | Set):
        raise InputError(f"the sentences are of type {type(sentences).__name__}; expected {SENTENCES}")
    found = sentences if isinstance(sentences, list) else list(sentences)
    if found and isinstance(found[0], str | tuple) and _is_one_sentence(found):
        raise InputError(f"one sentence was given, {_shorten(found)}; expected a list of sentences: [[...]]")
    return found


def _is_one_sentence(given: Sequence[object]) -> bool:
    """Tell whether these are words, or words with tags, and no sentences."""
    if all(isinstance(each, str) for each in given):
        return not any(len(str(each).split()) > 1 for each in given)  # which are texts
    return all(isinstance(each, tuple) and _is_pair(each) for each in given)


def _is_pair(given: tuple[object, ...]) -> bool:
    return len(given) == 2 and isinstance(given[0], str) and isinstance(given[1], str | None)


def read_words(sentence: Any, number: int, reader: object) -> tuple[list[str], list[str]]:  # noqa: ANN401
    """Return the words and tags of the sentence of this number, from 1; a tag that is missing is ``"_"``."""
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
    """Return sentences as dependency trees; those that are such trees are handed on as they are.

    Parameters
    ----------
    sentences : iterable of SentenceLike
    reader : object
        The model that reads them, for error messages.
    tag_column : {"upos", "xpos"}
        Where the tags of (word, tag) pairs go; those of a `ConstTree` always are in XPOS.
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


def check_tags(
    sentences: Sequence[Any],
    trees: Sequence[DepTree],
    reader: object,
    *,
    known: Sequence[str],
    tag_column: TagColumn = "upos",
) -> None:
    """Refuse sentences without the tags that a model needs.

    Each word of a list must have one. Of trees, which may be those of a treebank that is tagged in part, some
    must have tags.

    Parameters
    ----------
    sentences : sequence of SentenceLike
        As they were given, and
    trees : sequence of DepTree
        as they were read.
    reader : object
        The model, for error messages.
    known : sequence of str
        The tags that the model was trained with, and
    tag_column : {"upos", "xpos"}
        where they stood.
    """
    for number, (sentence, tree) in enumerate(zip(sentences, trees, strict=True), start=1):
        if sentence is not tree:
            tags = _check_all_tagged(tree, number, reader)
            if tags and not (universal_tags() | set(known)).intersection(tags):
                name = type(reader).__name__
                seen = ", ".join(sorted(set(known) - {"_"})[:8])
                raise InputError(
                    f"sentence {number} has {quote(tags[0])} for a tag, and none that this {name} was "
                    f"trained with; expected {tag_column.upper()} tags: {seen}, ..."
                )
    if any(_has_tags(tree) for tree in trees):
        return
    for number, tree in enumerate(trees, start=1):
        if len(tree):
            raise missing_tags(f"sentence {number} has no tags", reader)


def _check_all_tagged(tree: DepTree, number: int, reader: object) -> list[str]:
    """Return the tags of a sentence, of which none may be missing."""
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
    """Return the error for words without the tags that a model needs."""
    return InputError(
        f"{found}{where}, and this {type(reader).__name__} needs tags; expected {expected}{where}, or a "
        f"model trained with {setting('tags', 'predicted')}"
    )


def _has_tags(tree: DepTree) -> bool:
    n = len(tree)
    return tree.upos.count("_") < n or tree.xpos.count("_") < n


def _text(text: str, reader: object) -> str:
    return f"the text {quote(text, 40)}, and a {type(reader).__name__} reads words (a Pipeline reads text)"


def _shorten(given: object) -> str:
    shown = reprlib.repr(given) if isinstance(given, list | tuple) else repr(given)
    return shown if len(shown) <= 80 else shown[:77] + "..."
