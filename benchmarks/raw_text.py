"""From raw text to trees: treewright and UDPipe 1, trained on the same files with default settings.

    pip install ufal.udpipe
    python benchmarks/raw_text.py FOLDER TREEBANK [TREEBANK ...] [--part dev] [--peers udpipe]

A TREEBANK is a path prefix such as DATA/ud/hu_szeged-ud, before -train.conllu, -dev.conllu and -test.conllu.
Models are stored in FOLDER and not trained again. The text of the part (test by default) is made as in the
shared tasks: sentences are joined by a space, unless the last word has SpaceAfter=No, and lines are wrapped
at 80 columns. Scores are F1 in percent, as in the CoNLL 2018 shared task.
"""

import argparse
import io
import time
from pathlib import Path

import peers

import treewright as tw

SHOWN = ("tokens", "sentences", "words", "upos", "ufeats", "lemmas", "uas", "las", "mlas", "blex")
WIDTH = 80


def make_text(trees, *, documents=False):
    """Return the text of sentences, wrapped; a paragraph ends before each `# newpar` or `# newdoc`.

    With `documents`, one also ends where the part of `sent_id` before its last hyphen changes.
    """
    paragraphs, document = [""], None
    for tree in trees:
        found = [each.rpartition("-")[0] for each in tree.comments if each.startswith("# sent_id")]
        is_first = any(comment.startswith(("# newpar", "# newdoc")) for comment in tree.comments)
        if paragraphs[-1] and (is_first or (documents and found != document)):
            paragraphs.append("")
        document = found
        ends_without_space = "SpaceAfter=No" in tree.misc[-1].split("|")
        paragraphs[-1] += tree.text + ("" if ends_without_space else " ")
    return "\n\n".join(map(wrap, paragraphs)) + "\n"


def wrap(text):
    """Replace spaces by line ends, so that lines have up to 80 characters."""
    lines, line = [], ""
    for word in text.split(" "):
        if line and len(line) + 1 + len(word) > WIDTH:
            lines.append(line)
            line = word
        else:
            line = f"{line} {word}" if line else word
    return "\n".join([*lines, line])


class Treewright:
    """The pipeline with its defaults."""

    def train(self, stem, path):
        """Train all parts."""
        data = [tw.read_conllu(f"{stem}-{part}.conllu") for part in ("train", "dev")]
        tw.Pipeline().fit(*data).save(path)

    def parse(self, path, text):
        """Return the trees of a text, and the seconds without loading."""
        nlp = tw.load(path)
        nlp(text[:2000])
        begin = time.perf_counter()
        return list(nlp(text)), time.perf_counter() - begin


class English(Treewright):
    """The English model in the package."""

    def train(self, stem, path):
        """Do nothing: the model is in the package."""

    def parse(self, path, text):
        """Return the trees of a text, and the seconds without loading."""
        return super().parse("en", text)


UDPIPE_PARTS = {"tok": ("", "none", "none"), "tagparse": ("none", "", "")}


class UDPipe:
    """UDPipe 1: the tokenizer in a file of its own, as it is trained alone."""

    def train(self, stem, path):
        """Train the tokenizer, and the tagger with the parser."""
        from ufal.udpipe import ProcessingError, Trainer

        path.mkdir()
        for name, options in UDPIPE_PARTS.items():
            data = [peers.UDPipe._sentences(f"{stem}-{part}.conllu") for part in ("train", "dev")]
            error = ProcessingError()
            binary = Trainer.train("morphodita_parsito", *data, *options, error)
            if error.occurred():
                raise RuntimeError(error.message)
            (path / f"{name}.udpipe").write_bytes(bytes(binary))

    def parse(self, path, text):
        """Return the trees of a text, and the seconds without loading."""
        from ufal.udpipe import Model, Pipeline, ProcessingError

        models = [Model.load(str(path / f"{name}.udpipe")) for name in UDPIPE_PARTS]
        splitting = Pipeline(models[0], "tokenize", Pipeline.NONE, Pipeline.NONE, "conllu")
        parsing = Pipeline(models[1], "conllu", Pipeline.DEFAULT, Pipeline.DEFAULT, "conllu")
        begin = time.perf_counter()
        rows = parsing.process(splitting.process(text, ProcessingError()), ProcessingError())
        seconds = time.perf_counter() - begin
        return tw.read_conllu(io.BytesIO(rows.encode())), seconds


def main():
    """Print a row for each treebank and system."""
    arguments = argparse.ArgumentParser()
    arguments.add_argument("folder", type=Path)
    arguments.add_argument("treebanks", nargs="+")
    arguments.add_argument("--part", default="test")
    arguments.add_argument(
        "--documents", action="store_true", help="begin a paragraph with each document, which sent_id names"
    )
    arguments.add_argument("--peers", default="treewright,udpipe")
    chosen = arguments.parse_args()
    chosen.folder.mkdir(exist_ok=True)
    print(f"{'treebank':16} {'system':10} " + " ".join(f"{name:>9}" for name in SHOWN) + "  sentences/s")
    for stem in chosen.treebanks:
        gold = tw.read_conllu(f"{stem}-{chosen.part}.conllu")
        text = make_text(gold, documents=chosen.documents)
        for system in chosen.peers.split(","):
            peer = {"treewright": Treewright, "english": English, "udpipe": UDPipe}[system]()
            path = chosen.folder / f"{Path(stem).name}.{system}"
            if not path.exists():
                peer.train(stem, path)
            found, seconds = peer.parse(path, text)
            scores = tw.metrics.conll2018(gold, found)
            figures = " ".join(f"{getattr(scores, name).f1:9.2f}" for name in SHOWN)
            print(f"{Path(stem).name:16} {system:10} {figures}  {len(gold) / seconds:8.0f}", flush=True)


if __name__ == "__main__":
    main()
