"""Readers on damaged input: each must return a value or raise a one-line error within the time limit."""

import gzip
import io
import tempfile
from pathlib import Path

from framenet_sample import TEXT, UNIT
from mutations import make_garbage, mutate_text

import treewright as tw
from treewright.data.formats import open_by_content
from treewright.data.svmlight import TreeExample, read_svmlight, read_tree_examples, write_tree_examples
from treewright.errors import TreewrightError
from treewright.kernels.files import read_examples, read_vectors

VECTORS = b"3 2\nkite 0.5 1\nzebra -1 2.5e-3\nthe 0 1\n"
SAMPLES = b"+1 3:1 17:1 # first\n-1 qid:7 3:1 40:0\n+1 word=bank:1 word=river 5:1\n"
WORDS = {"kite", "zebra", "the"}


def read_told(data):
    """Read a file in whatever format its content tells."""
    with tempfile.NamedTemporaryFile(dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as file:
        file.write(data)
        file.flush()
        with open_by_content(file.name) as (told, stream):
            return list(told.read(stream))


def _of_stream(read, **options):
    return lambda data: read(io.BytesIO(data), **options)


def _read_brackets_whole(data):
    return tw.read_brackets(io.BytesIO(data), functions=True, traces=True, unescape=True)


READERS = {
    "CoNLL-U": (_of_stream(tw.read_conllu), "conllu"),
    "CoNLL-U, lenient": (_of_stream(tw.read_conllu, require_heads=False), "conllu"),
    "CoNLL-U, one root": (_of_stream(tw.read_conllu, single_root=True), "conllu"),
    "CoNLL-X": (_of_stream(tw.read_conllx), "conllx"),
    "CoNLL-2009": (_of_stream(tw.read_conll2009), "conll2009"),
    "brackets": (_of_stream(tw.read_brackets), "brackets"),
    "brackets, whole": (_read_brackets_whole, "brackets"),
    "one tree": (lambda data: tw.ConstTree.parse(data.decode("utf-8", "surrogateescape")), "brackets"),
    "PropBank columns": (_of_stream(tw.read_props), "props"),
    "FrameNet": (_of_stream(tw.read_framenet), "framenet"),
    "SVM-light": (_of_stream(read_svmlight), "samples"),
    "SVM-light-TK": (_of_stream(read_tree_examples), "examples"),
    "examples of kernels": (_of_stream(read_examples), None),
    "vectors of words": (_of_stream(read_vectors, words=WORDS), "vectors"),
    "any treebank": (read_told, None),
}
"""What is read, and from which format the damaged texts are made; None: from all."""
NAMES = list(READERS)


def make_seeds(folder):
    """Return sound texts of each format."""
    bank = tw.make_treebank(n_sentences=3, random_state=0)
    crossing = tw.make_treebank(n_sentences=3, random_state=1, crossing=1.0)
    texts = {"framenet": [UNIT.encode(), TEXT.encode()], "samples": [SAMPLES], "vectors": [VECTORS]}
    examples = [TreeExample(1, tuple(bank.constituents[:2])), TreeExample(-1, (bank.constituents[2], None))]
    writers = {
        "conllu": (tw.write_conllu, bank.dependencies),
        "conllx": (tw.write_conllx, crossing.dependencies),
        "conll2009": (tw.write_conll2009, crossing.dependencies),
        "brackets": (tw.write_brackets, bank.constituents),
        "props": (tw.write_props, bank.propositions),
        "examples": (write_tree_examples, examples),
    }
    for name, (write, items) in writers.items():
        path = Path(folder) / name
        write(items, path)
        texts[name] = [path.read_bytes()]
    texts["conllu"] += [
        _with_extra_lines(texts["conllu"][0]),
        b"# global.columns = ID FORM HEAD\n1\ta\t0\n\n",
    ]
    texts["conll2009"].append(_with_a_predicate(texts["conll2009"][0]))
    texts["brackets"].append(b"( (S (NP-SBJ-1 (-NONE- *)) (VP (V go) (NP=2 (N kite)))) )\n")
    return texts


def _with_extra_lines(text):
    """Add a multiword token and an empty node."""
    return text.replace(b"\n1\t", b"\n1-2\tab" + b"\t_" * 8 + b"\n1\t", 1).replace(
        b"\n3\t", b"\n2.1\tx" + b"\t_" * 8 + b"\n3\t", 1
    )


def _with_a_predicate(text):
    """Make the first word of the first sentence a predicate."""
    lines = text.partition(b"\n\n")[0].split(b"\n")
    rows = [[*line.split(b"\t"), b"A0"] for line in lines]
    rows[0][12:14] = [b"Y", b"go.01"]
    return b"\n".join(map(b"\t".join, rows)) + b"\n\n"


def make_hostile():
    """Return texts that are made to take time or memory."""
    n = 20_000
    laughs = "".join(f'<!ENTITY l{i} "{f"&l{i - 1};" * 10}">' for i in range(1, 12))
    entities = f'<?xml version="1.0"?><!DOCTYPE x [<!ENTITY l0 "lol">{laughs}]>'.encode()
    row = b"\t_" * 9
    return {
        "open brackets": b"(" * n,
        "deep tree": b"(S " * n + b"w" + b")" * n,
        "closed brackets": b")" * n,
        "long number": b"+1 " + b"9" * 6000 + b":1 3:1\n",
        "long value": b"+1 3:" + b"1" * n * 5 + b"x\n",
        "long value of a tree": b"+1 |BT| (S a) |ET| 3:" + b"1" * n * 5 + b"x |EV|\n",
        "long label": b"1" * n * 5 + b"x |BT| (S a) |ET|\n",
        "twice at the end": b"+1 " + b" ".join(b"%d:1" % i for i in range(n)) + b" %d:1\n" % (n - 1),
        "laughs": entities
        + b'<lexUnit xmlns="http://framenet.icsi.berkeley.edu"><sentence><text>&l11;</text>',
        "outside": b'<!DOCTYPE x [<!ENTITY y SYSTEM "file:///etc/passwd">]>'
        b'<lexUnit xmlns="http://framenet.icsi.berkeley.edu"><sentence><text>&y;</text></sentence></lexUnit>',
        "deep elements": b'<lexUnit xmlns="http://framenet.icsi.berkeley.edu">' + b"<a>" * n,
        "deep sentences": b'<lexUnit xmlns="http://framenet.icsi.berkeley.edu">' + b"<sentence>" * 2000,
        "chain of heads": b"".join(b"%d\tw\t_\t_\t_\t_\t%d\tr\t_\t_\n" % (i, i - 1) for i in range(1, n))
        + b"\n",
        "cycle of heads": b"".join(
            b"%d\tw\t_\t_\t_\t_\t%d\tr\t_\t_\n" % (i, i % 5000 + 1) for i in range(1, 5001)
        )
        + b"\n",
        "huge range": b"1-999999999\tab" + row[:16] + b"\n1\ta" + row[:16] + b"\n\n",
        "roles without end": b"1\tw\tT\tgo\tgo.01\t" + b"(A" * n + b"*\n\n",
        "spaces": gzip.compress(b" " * (1 << 24)),
        "empty lines": gzip.compress(b"\n" * (1 << 22)),
        "comments": b"# x\n" * n,
    }


def judge(name, data):
    """Let a reader read; return "value" or "refused", or what has gone wrong."""
    try:
        READERS[name][0](data)
    except TreewrightError as error:
        return "refused" if "\n" not in str(error) else "an error of several lines"
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return "value"


def make_case(rng, texts):
    """Return the name of a reader and a damaged text for it."""
    name = rng.choice(NAMES)
    _, kind = READERS[name]
    everything = [text for group in texts.values() for text in group]
    if rng.random() < 0.05:
        return name, make_garbage(rng)
    return name, mutate_text(rng, rng.choice(texts[kind] if kind else everything), rng.choice(everything))
