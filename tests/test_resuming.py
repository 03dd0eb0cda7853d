"""Trainings that are cut off after any of their steps, and go on to the same model."""

import numpy as np
import pytest

import treewright as tw
from treewright import checkpoint
from treewright.annotation.contract import Request
from treewright.annotation.files import Unfinished, annotate_file
from treewright.checkpoint import Checkpoint
from treewright.errors import FormatError, InputError
from treewright.kernels import gram
from treewright.kernels.compose import VectorKernel
from treewright.model import identify


class CutOffError(Exception):
    """A training was stopped."""


@pytest.fixture(scope="module")
def bank():
    return tw.make_treebank(40, random_state=0)


@pytest.fixture
def cut_off(monkeypatch):
    """Return a function that trains as often as needed, cut off after each step that is kept anew."""

    def train(make, folder, *data):
        save = Checkpoint.save

        def save_and_stop(kept, name, state):
            save(kept, name, state)
            raise CutOffError(name)

        monkeypatch.setattr(Checkpoint, "save", save_and_stop)
        for n_cut in range(100):
            try:
                model = make().fit(*data, checkpoint=folder)
            except CutOffError:
                continue
            monkeypatch.undo()
            return model, n_cut
        raise AssertionError("the training does not come to its end")

    return train


def test_a_tagger_goes_on_after_each_epoch(bank, cut_off, tmp_path):
    def make():
        return tw.Tagger(epochs=3, runs=2, random_state=1)

    whole = make().fit(bank.dependencies)
    resumed, n_cut = cut_off(make, tmp_path / "steps", bank.dependencies)
    assert n_cut == 2 * (3 + 8)  # runs; epochs of tags and of lemmas
    assert identify(resumed.get_state()) == identify(whole.get_state())
    with pytest.raises(InputError, match="other data or options"):
        tw.Tagger(epochs=3, random_state=2).fit(bank.dependencies, checkpoint=tmp_path / "steps")


@pytest.mark.slow_cases
@pytest.mark.parametrize("kernel", ["linear", "sst", "linear+fragments", "mined"])
def test_a_labeler_goes_on_after_each_step(bank, cut_off, tmp_path, kernel):
    def make():
        return tw.RoleLabeler(kernel=kernel, features="standard")

    data = bank.constituents, bank.propositions
    whole = make().fit(*data)
    resumed, n_cut = cut_off(make, tmp_path / "steps", *data)
    assert n_cut >= (2 if kernel == "linear" else 2 + len(whole.classifier_.classes_) * (kernel != "mined"))
    assert identify(resumed.get_state()) == identify(whole.get_state())
    with pytest.raises(InputError, match="other data or options"):
        make().fit(data[0][:20], data[1][:20], checkpoint=tmp_path / "steps")


def test_machines_with_probabilities_go_on_after_each_class(cut_off, tmp_path):
    def make():
        return tw.TreeKernelClassifier(VectorKernel("rbf", gamma=0.3), probability=True)

    rng = np.random.default_rng(0)
    data = rng.normal(size=(30, 3)), rng.integers(3, size=30)
    resumed, n_cut = cut_off(make, tmp_path / "steps", *data)
    assert n_cut == 3
    assert identify(resumed.get_state()) == identify(make().fit(*data).get_state())


def test_a_parser_of_constituents_saves_the_same_file_each_time(bank, tmp_path):
    for name in ("one", "two"):
        tw.ConstituentParser(lowest_penalty=20).fit(bank.constituents).save(tmp_path / name)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


def test_a_matrix_in_a_file_goes_on_after_each_strip(bank, monkeypatch, tmp_path):
    monkeypatch.setattr(checkpoint, "SECONDS_BETWEEN", 0)
    monkeypatch.setattr(gram, "ROWS_AT_A_TIME", 7)
    kernel, trees = tw.SubsetTreeKernel(decay=0.4), bank.constituents
    tw.gram(kernel, trees, out=tmp_path / "whole.npy")
    strip, n_strips = gram._store, []

    def store_once(*strips, **options):
        strip(*strips, **options)
        n_strips.append(1)
        if len(n_strips) % 2 == 0:
            raise CutOffError

    monkeypatch.setattr(gram, "_store", store_once)
    times = []
    for _ in range(5):
        with pytest.raises(CutOffError):
            tw.gram(kernel, trees, out=tmp_path / "cut.npy", checkpoint=tmp_path / "steps", times=[])
    tw.gram(kernel, trees, out=tmp_path / "cut.npy", checkpoint=tmp_path / "steps", times=times)
    assert len(times) == 6  # also of what was done before
    assert (tmp_path / "cut.npy").read_bytes() == (tmp_path / "whole.npy").read_bytes()
    with pytest.raises(InputError, match="other data or options"):
        tw.gram(kernel, trees[1:], out=tmp_path / "cut.npy", checkpoint=tmp_path / "steps")


@pytest.fixture(scope="module")
def models(bank):
    parser = tw.DependencyParser(order=1, epochs=1, runs=1, table_bits=12)
    return {
        "tagger": tw.Tagger(epochs=1).fit(bank.dependencies),
        "parser": parser.fit(bank.dependencies),
        "trees": tw.ConstituentParser(lowest_penalty=20).fit(bank.constituents),
        "roles": tw.RoleLabeler().fit(bank.constituents, bank.propositions),
    }


@pytest.fixture(scope="module")
def inputs(bank, tmp_path_factory):
    """Return files to parse; the first has columns of its own."""
    folder = tmp_path_factory.mktemp("inputs")
    names = "ID FORM LEMMA UPOS XPOS FEATS HEAD DEPREL DEPS MISC MINE"
    first = bank.dependencies[0].with_comments([f"# global.columns = {names}"])
    tw.write_conllu([first, *bank.dependencies[1:9]], folder / "columns.conllu")
    tw.write_brackets(bank.constituents[:9], folder / "trees.mrg")
    tw.write_props(bank.propositions[:9], folder / "roles.props")
    return folder


PARSES = {
    "tagger": ("columns.conllu", Request()),
    "parser": ("columns.conllu", Request(k=3)),
    "trees": ("trees.mrg", Request(k=2)),
    "roles": ("trees.mrg", Request()),
}


@pytest.mark.slow_cases
@pytest.mark.parametrize("ending", ["", ".gz"])
@pytest.mark.parametrize("name", PARSES)
def test_parsing_goes_on_after_each_sentence(models, inputs, name, ending, monkeypatch, tmp_path):
    source, request = PARSES[name]
    work = (models[name], str(inputs / source))
    annotate_file(*work, str(tmp_path / f"whole{ending}"), request, checkpoint=tmp_path / "none")
    steps, target = tmp_path / "steps", tmp_path / f"cut{ending}"
    monkeypatch.setattr(checkpoint, "SECONDS_BETWEEN", 0)
    note = Unfinished._note

    def note_and_stop(unfinished, stream, number):
        note(unfinished, stream, number)
        if number % 4 == 0:
            stream.write(b"half a sen")
            raise CutOffError

    monkeypatch.setattr(Unfinished, "_note", note_and_stop)
    for _ in range(2):
        with pytest.raises(CutOffError):
            annotate_file(*work, str(target), request, checkpoint=steps)
        assert not target.exists()
    annotate_file(*work, str(target), request, checkpoint=steps)
    assert target.read_bytes() == (tmp_path / f"whole{ending}").read_bytes()
    assert not steps.exists()


def test_parsing_does_not_go_on_with_another_input(models, inputs, monkeypatch, tmp_path):
    monkeypatch.setattr(checkpoint, "SECONDS_BETWEEN", 0)
    monkeypatch.setattr(tw.Tagger, "predict", lambda tagger, batch: [*batch[:2], None])
    out, steps = tmp_path / "out", tmp_path / "steps"
    with pytest.raises(AttributeError):
        annotate_file(models["tagger"], str(inputs / "columns.conllu"), str(out), checkpoint=steps)
    monkeypatch.undo()
    other = tmp_path / "other.conllu"
    other.write_bytes((inputs / "columns.conllu").read_bytes() + b"\n")
    with pytest.raises(InputError, match="other data or options"):
        annotate_file(models["tagger"], str(other), str(out), checkpoint=steps)


def test_parsing_that_cannot_go_on_leaves_nothing(models, inputs, monkeypatch, tmp_path):
    monkeypatch.setattr(checkpoint, "SECONDS_BETWEEN", 0)
    broken = tmp_path / "broken.conllu"
    broken.write_bytes((inputs / "columns.conllu").read_bytes() + b"1\tno columns\n\n")
    with pytest.raises(FormatError):
        annotate_file(models["tagger"], str(broken), str(tmp_path / "out"), checkpoint=tmp_path / "steps")
    assert list(tmp_path.iterdir()) == [broken]
