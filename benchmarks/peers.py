"""Accuracy, speed, memory and size of treewright, UDPipe 1 and spaCy on the same files.

    pip install ufal.udpipe spacy
    python benchmarks/peers.py FOLDER train.conllu dev.conllu test.conllu [name ...]

Models are stored in FOLDER with their training times, and not trained again. The names are `udpipe`, `spacy`
and `treewright-ORDER` (default: all). Each parser gets the tokens of the test file and its gold tags, except
spaCy, which does not use given tags. Each parses the file in a separate process with one thread. UDPipe is
trained with the options of its UD models, but with half as many iterations, a static oracle (a dynamic one
takes hours), and no embeddings from other text. spaCy is trained with its default architecture.
"""

import json
import random
import subprocess
import sys
import time
from pathlib import Path

import treewright as tw

UDPIPE_OPTIONS = (
    "iterations=15;embedding_upostag=20;embedding_feats=20;embedding_xpostag=0;embedding_form=50;"
    "embedding_lemma=0;embedding_deprel=20;learning_rate=0.02;learning_rate_final=0.001;l2=0.5;"
    "hidden_layer=200;batch_size=10;transition_system=projective;transition_oracle=static;"
    "structured_interval=0"
)
SPACY_EPOCHS = 5
NAMES = ("treewright-1", "treewright-2", "treewright-3", "udpipe", "spacy")


class UDPipe:
    """UDPipe 1."""

    def train(self, train_path, dev_path, model):
        """Train the parser alone."""
        from ufal.udpipe import ProcessingError, Sentences, Trainer

        error = ProcessingError()
        data = [self._sentences(path) for path in (train_path, dev_path)]
        assert all(isinstance(one, Sentences) for one in data)
        binary = Trainer.train("morphodita_parsito", *data, "none", "none", UDPIPE_OPTIONS, error)
        if error.occurred():
            raise RuntimeError(error.message)
        model.write_bytes(bytes(binary))

    def load(self, model):
        """Make ready to parse."""
        from ufal.udpipe import Model, Pipeline

        self.model = Model.load(str(model))
        self.pipeline = Pipeline(self.model, "conllu", Pipeline.NONE, Pipeline.DEFAULT, "conllu")

    def parse(self, path):
        """Parse a file."""
        from ufal.udpipe import ProcessingError

        text = self.pipeline.process(Path(path).read_text(encoding="utf-8"), ProcessingError())
        Path("parsed.conllu").write_text(text, encoding="utf-8")
        return tw.read_conllu("parsed.conllu")

    @staticmethod
    def _sentences(path):
        from ufal.udpipe import InputFormat, ProcessingError, Sentence, Sentences

        reader = InputFormat.newConlluInputFormat()
        reader.setText(Path(path).read_text(encoding="utf-8"))
        found, error = Sentences(), ProcessingError()
        while True:
            sentence = Sentence()
            if not reader.nextSentence(sentence, error):
                return found
            found.append(sentence)


class SpaCy:
    """spaCy's transition-based parser."""

    def train(self, train_path, dev_path, model):
        """Train a parser on words alone, keeping the epoch that is best on dev."""
        import spacy
        from spacy.training import Example
        from spacy.util import compounding, minibatch

        rng = random.Random(0)
        spacy.util.fix_random_seed(0)
        pipeline = spacy.blank("xx")
        pipeline.add_pipe("parser")
        trees = [tree for tree in tw.read_conllu(train_path) if len(tree)]
        examples = [self._example(pipeline, Example, tree) for tree in trees]
        pipeline.initialize(lambda: examples)
        optimizer = pipeline.create_optimizer()
        best = 0.0
        for epoch in range(SPACY_EPOCHS):
            rng.shuffle(examples)
            for batch in minibatch(examples, size=compounding(4.0, 64.0, 1.001)):
                pipeline.update(batch, sgd=optimizer, drop=0.2)
            self.pipeline = pipeline
            score = tw.metrics.attachment(tw.read_conllu(dev_path), self.parse(dev_path)).las
            print(f"spacy epoch {epoch + 1}: dev LAS {score:.2f}", flush=True)
            if score > best:
                best = score
                pipeline.to_disk(model)

    @staticmethod
    def _example(pipeline, example, tree):
        from spacy.tokens import Doc

        heads = [at if head == 0 else int(head) - 1 for at, head in enumerate(tree.heads)]
        reference = Doc(pipeline.vocab, words=tree.words, heads=heads, deps=tree.deprels)
        return example(Doc(pipeline.vocab, words=tree.words), reference)

    def load(self, model):
        """Make ready to parse."""
        import spacy

        self.pipeline = spacy.load(model)

    def parse(self, path):
        """Parse the words of a file, each sentence a document."""
        from spacy.tokens import Doc

        trees = tw.read_conllu(path)
        documents = [Doc(self.pipeline.vocab, words=tree.words) for tree in trees]
        parsed = []
        for tree, document in zip(trees, self.pipeline.pipe(documents), strict=True):
            heads = [0 if token.head.i == token.i else token.head.i + 1 for token in document]
            relations = ["root" if token.dep_ == "ROOT" else token.dep_ or "dep" for token in document]
            parsed.append(tree.with_heads(heads, relations))
        return parsed


class Treewright:
    """treewright, of some order."""

    def __init__(self, order):
        self.order = order

    def train(self, train_path, dev_path, model):
        """Train with the default options."""
        parser = tw.DependencyParser(order=self.order)
        with tw.progress.messages_to(print):
            parser.fit(tw.read_conllu(train_path), tw.read_conllu(dev_path)).save(model)

    def load(self, model):
        """Make ready to parse."""
        self.parser = tw.load(model)

    def parse(self, path):
        """Parse a file."""
        return self.parser.predict(tw.read_conllu(path))


def make(name):
    """Return the parser of this name."""
    return {"udpipe": UDPipe, "spacy": SpaCy}[name]() if "-" not in name else Treewright(int(name[-1]))


def train(folder, name, train_path, dev_path):
    """Train a parser unless its model is there."""
    model, notes = folder / f"{name}.model", folder / f"{name}.json"
    if not notes.exists():
        start = time.perf_counter()
        make(name).train(train_path, dev_path, model)
        notes.write_text(json.dumps({"training_s": time.perf_counter() - start}))


def peak_memory():
    """Return the most memory that this process has held, in MiB (Linux)."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024


def measure(folder, name, test_path):
    """Print a line of figures."""
    model = folder / f"{name}.model"
    parser = make(name)
    start = time.perf_counter()
    parser.load(model)
    loading = time.perf_counter() - start
    parser.parse(test_path)
    seconds = []
    for _ in range(3):
        start = time.perf_counter()
        parsed = parser.parse(test_path)
        seconds.append(time.perf_counter() - start)
    gold = tw.read_conllu(test_path)
    with_all, without = (tw.metrics.attachment(gold, parsed, punctuation=rule) for rule in (True, "unicode"))
    size = sum(one.stat().st_size for one in ([model] if model.is_file() else model.rglob("*")))
    notes = json.loads((folder / f"{name}.json").read_text())
    print(
        f"{name:12s} UAS/LAS {with_all.uas:.2f}/{with_all.las:.2f}, without punctuation {without.uas:.2f}/"
        f"{without.las:.2f}; {len(gold) / min(seconds):.0f} sentences a second, {size / 1e6:.1f} MB, "
        f"{peak_memory():.0f} MiB, loads in {loading:.2f} s, trained in {notes['training_s']:.0f} s",
        flush=True,
    )


def main(folder, train_path, dev_path, test_path, *names):
    """Train what is missing, then measure one after another."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    for name in names or NAMES:
        train(folder, name, train_path, dev_path)
    for name in names or NAMES:
        command = [sys.executable, __file__, "--measure", str(folder), name, test_path]
        subprocess.run(command, check=True)


if __name__ == "__main__":
    if sys.argv[1] == "--measure":
        measure(Path(sys.argv[2]), *sys.argv[3:])
    else:
        main(*sys.argv[1:])
