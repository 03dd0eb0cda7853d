"""Parameters of fitted models, what is saved of them, and model files."""

import json
import os
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from safetensors.numpy import save_file

import treewright as tw
from treewright._naming import spelled_by
from treewright.annotation.contract import Annotator, Request
from treewright.errors import FormatError, InputError
from treewright.kernels.compose import VectorKernel
from treewright.learn.weights import PackedWeights
from treewright.model import Model, State, find_class, identify, load_state, save_state
from treewright.parsing.contract import PartScorer
from treewright.rerank.any_candidates import CandidateReranker


@pytest.fixture(scope="module")
def trees():
    return tw.make_treebank(30, random_state=0).dependencies


@pytest.fixture
def tagger(trees):
    return tw.Tagger(epochs=1).fit(trees)


@pytest.fixture(scope="module")
def labeler():
    bank = tw.make_treebank(30, random_state=0)
    return tw.RoleLabeler().fit(bank.constituents, bank.propositions)


def test_a_model_is_not_used_with_values_that_a_parameter_cannot_have():
    parser = tw.DependencyParser()
    with pytest.raises(InputError, match="n_jobs is 'a'; expected an integer of at least 1"):
        parser.using(n_jobs="a")


def test_a_fitted_model_is_used_with_parameters_that_it_looks_at(labeler):
    assert labeler.using(n_jobs=2).n_jobs == 2
    assert labeler.n_jobs == 1


def test_parameters_that_only_training_reads_are_refused_in_using(tagger, labeler):
    with pytest.raises(InputError) as caught:
        tagger.using(epochs=9)
    assert str(caught.value) == (
        "epochs has no effect on a fitted Tagger; expected none; to change it, use with_params and fit again"
    )
    with pytest.raises(
        InputError, match=r"kernel has no effect on a fitted RoleLabeler; expected one of n_jobs"
    ):
        labeler.using(kernel="sst")


@pytest.mark.parametrize(
    "kind",
    [
        tw.DependencyParser,
        tw.DependencyReranker,
        tw.ConstituentParser,
        tw.LeftCornerParser,
        tw.SpanParser,
        tw.ConstituentReranker,
        tw.RoleLabeler,
        tw.ConjunctionMiner,
    ],
)
def test_adjustable_parameters_are_parameters(kind):
    assert set(kind.adjustable) <= set(kind.param_names())


def test_a_model_that_was_changed_after_fitting_is_not_saved(tagger, tmp_path):
    tagger.set_params(epochs=9)
    with pytest.raises(InputError) as caught:
        tagger.save(tmp_path / "m")
    assert (
        str(caught.value)
        == "epochs was 1 in fit and is now 9; fit the model again, or restore the value, before saving"
    )
    tagger.set_params(epochs=1).save(tmp_path / "m")
    assert tw.load(tmp_path / "m").epochs == 1


def test_a_model_that_was_changed_and_fitted_again_is_saved(tagger, trees, tmp_path):
    tagger.set_params(epochs=2).fit(trees).save(tmp_path / "m")
    loaded = tw.load(tmp_path / "m")
    assert loaded.epochs == 2
    with pytest.raises(InputError, match="epochs was 2 in fit and is now 3"):
        loaded.set_params(epochs=3).save(tmp_path / "m")


def test_parameters_of_parameters_count_as_well(tmp_path):
    rows, labels = np.eye(4), [0, 1, 0, 1]
    machine = tw.TreeKernelClassifier(VectorKernel("rbf", gamma=0.5)).fit(rows, labels)
    machine.set_params(kernel__gamma=2.0)
    with pytest.raises(InputError, match=r"kernel was VectorKernel\(.*gamma=0.5.* in fit and is now Vector"):
        machine.save(tmp_path / "m")


class TagReader(Annotator):
    """A model with a tagger of its own."""

    finds = "tags"
    can = frozenset({"tags", "language"})
    own_tagger = "a tagger"

    def __init__(self, *, tags="predicted"):
        self.tags = tags


@pytest.mark.parametrize(
    ("spell", "message"),
    [
        (
            str,
            "tags='gold' does not work with language, because plain text has no tags; "
            "expected tags='predicted'",
        ),
        (
            {"language": "--raw", "tags": "--tags"}.get,
            "--tags gold does not work with --raw, because plain text has no tags; expected --tags predicted",
        ),
    ],
)
def test_plain_text_has_no_gold_tags(spell, message):
    with spelled_by(spell), pytest.raises(InputError) as caught:
        TagReader().prepare_for(Request(tags="gold", language="xx"))
    assert str(caught.value) == message


def test_a_loaded_reranker_of_candidates_has_its_weights_as_they_were_given(tmp_path):
    lists, losses, scores = [[[1.0], [0.0]]], [[0.0, 1.0]], [[-1.0, -2.0]]
    CandidateReranker(base_weights=(1.0, 2.0)).fit(lists, losses, scores, dev=(lists, losses, scores)).save(
        tmp_path / "m"
    )
    loaded = tw.load(tmp_path / "m")
    assert loaded.base_weights == (1.0, 2.0)
    assert repr(loaded) == "CandidateReranker(base_weights=(1.0, 2.0))"


def test_unknown_parameters_are_refused_in_one_form():
    with pytest.raises(InputError) as caught:
        PartScorer().set_params(x=1)
    assert str(caught.value) == "PartScorer has no parameter 'x'; expected no parameters"
    for model in (tw.Tagger(), tw.ConjunctionMiner(), tw.TreeKernelClassifier(), tw.SubsetTreeKernel()):
        with pytest.raises(
            InputError, match=rf"^{type(model).__name__} has no parameter 'x'; expected one of "
        ):
            model.set_params(x=1)


def nested_state():
    inner = State("Inner", {"names": ["ä", "b"]}, {"table": np.arange(4, dtype=np.uint8)})
    arrays = {"table": np.ones((2, 3), dtype=np.float32), "empty": np.zeros(0, dtype=np.int64)}
    return State("Outer", {"number": 3, "share": 0.5, "none": None}, arrays, {"inner": inner})


def assert_same(left, right):
    assert (left.kind, left.values, left.parts.keys()) == (right.kind, right.values, right.parts.keys())
    assert left.arrays.keys() == right.arrays.keys()
    for name, array in left.arrays.items():
        assert array.dtype == right.arrays[name].dtype
        np.testing.assert_array_equal(array, right.arrays[name])
    for name, part in left.parts.items():
        assert_same(part, right.parts[name])


def test_a_state_comes_back_with_the_models_inside_it(tmp_path):
    save_state(nested_state(), tmp_path / "model")
    assert_same(load_state(tmp_path / "model"), nested_state())


def test_the_same_state_gives_the_same_bytes(tmp_path):
    for name in ("one", "two"):
        save_state(nested_state(), tmp_path / name)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


def test_a_failed_save_leaves_the_old_model(tmp_path):
    path = tmp_path / "model"
    path.write_text("old")
    with pytest.raises(InputError, match="expected a name without '/'"):
        save_state(State("Outer", {}, {"a/b": np.zeros(1)}), path)
    assert path.read_text() == "old"


@pytest.mark.parametrize("content", [b"", b"\0" * 100, b"not a model", b"\xff" * 16])
def test_a_file_that_is_no_model_is_refused(tmp_path, content):
    path = tmp_path / "model"
    path.write_bytes(content)
    with pytest.raises(FormatError, match="expected a treewright model"):
        load_state(path)


def test_every_truncation_of_a_model_is_refused(tmp_path):
    path = tmp_path / "model"
    save_state(nested_state(), path)
    whole = path.read_bytes()
    for end in range(0, len(whole), 7):
        path.write_bytes(whole[:end])
        with pytest.raises(FormatError):
            load_state(path)


def test_a_file_of_another_program_is_refused(tmp_path):
    save_file({"a": np.zeros(1)}, tmp_path / "other", {"format": "pt"})
    with pytest.raises(FormatError, match="a safetensors file from another program"):
        load_state(tmp_path / "other")


@pytest.mark.parametrize(
    ("format_", "message"),
    [
        (99, r"9\.9 in a newer format; .*update treewright"),
        (1, r"9\.9 in an older format; .*train the model again"),
    ],
)
def test_another_format_is_refused_with_a_remedy(tmp_path, format_, message):
    content = {"format": format_, "version": "9.9", "model": {}}
    save_file({"a": np.zeros(1)}, tmp_path / "other", {"treewright": json.dumps(content)})
    with pytest.raises(FormatError, match=message):
        load_state(tmp_path / "other")


def test_every_changed_byte_of_arrays_is_found(tmp_path):
    path = tmp_path / "model"
    save_state(nested_state(), path)
    whole = path.read_bytes()
    begin = 8 + int.from_bytes(whole[:8], "little")
    assert begin < len(whole)
    for at in range(begin, len(whole)):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        with pytest.raises(FormatError, match="checksum"):
            load_state(path)


def test_changed_bytes_of_headers_are_refused_or_change_nothing(tmp_path):
    path = tmp_path / "model"
    save_state(nested_state(), path)
    whole = path.read_bytes()
    for at in range(8 + int.from_bytes(whole[:8], "little")):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        try:
            found = load_state(path)
        except FormatError:
            continue
        assert_same(found, nested_state())


def test_a_header_that_claims_to_be_huge_is_refused(tmp_path):
    path = tmp_path / "model"
    for size in (1 << 62, 1 << 40, 10**8 + 1):
        path.write_bytes(size.to_bytes(8, "little") + b"{}")
        with pytest.raises(FormatError, match="not a readable model"):
            load_state(path)


def test_values_nested_without_end_are_refused(tmp_path):
    deep = "[" * 100_000 + "]" * 100_000
    save_file({"a": np.zeros(1)}, tmp_path / "deep", {"treewright": deep})
    with pytest.raises(FormatError, match="not a readable model"):
        load_state(tmp_path / "deep")


def test_load_refuses_kinds_it_does_not_know(tmp_path):
    save_state(State("Outer"), tmp_path / "model")
    with pytest.raises(FormatError, match="a file of kind 'Outer'; expected a treewright model"):
        tw.load(tmp_path / "model")


def test_load_names_the_kind_of_a_part_that_it_does_not_know(tmp_path):
    state = tw.Tagger(epochs=1).fit(tw.make_treebank(n_sentences=5, random_state=0).dependencies).get_state()
    state.parts["classifier"].kind = "Outer"
    save_state(state, tmp_path / "model")
    with pytest.raises(
        FormatError, match="a Tagger with a submodel of kind 'Outer'; expected a treewright model"
    ):
        tw.load(tmp_path / "model")


def test_every_public_model_is_found_by_its_name():
    for name in tw.__all__:
        public = getattr(tw, name)
        if isinstance(public, type) and issubclass(public, Model):
            assert find_class(name) is public


def test_the_same_model_has_the_same_name_in_any_order_of_arrays():
    state = nested_state()
    state.arrays = dict(reversed(state.arrays.items()))
    assert identify(state) == identify(nested_state())


@pytest.mark.parametrize("change", ["kind", "value", "array", "dtype", "shape", "inner value", "inner array"])
def test_a_model_has_another_name_after_any_change(change):
    state = nested_state()
    inner = state.parts["inner"]
    if change == "kind":
        state.kind = "Other"
    elif change == "value":
        state.values["number"] = 4
    elif change == "array":
        state.arrays["table"][1, 2] = 2
    elif change == "dtype":
        state.arrays["table"] = state.arrays["table"].view(np.int32)
    elif change == "shape":
        state.arrays["table"] = state.arrays["table"].reshape(3, 2)
    elif change == "inner value":
        inner.values["names"].append("c")
    else:
        inner.arrays["table"][0] = 9
    assert identify(state) != identify(nested_state())


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes here")
def test_a_model_goes_through_a_pipe_that_stays(tmp_path):
    pipe, path = tmp_path / "pipe", tmp_path / "a.tw"
    os.mkfifo(pipe)
    save_state(nested_state(), path)
    with ThreadPoolExecutor(1) as pool:
        found = pool.submit(pipe.read_bytes)
        save_state(nested_state(), pipe)
    assert found.result() == path.read_bytes()
    assert pipe.is_fifo()


def test_a_model_goes_where_a_link_leads(tmp_path):
    (tmp_path / "link.tw").symlink_to("real.tw")
    save_state(nested_state(), tmp_path / "link.tw")
    assert (tmp_path / "link.tw").is_symlink()
    assert load_state(tmp_path / "real.tw").kind == "Outer"


def test_a_missing_model_is_the_systems_error(tmp_path):
    with pytest.raises(FileNotFoundError):
        tw.load(tmp_path / "none")


def test_weights_of_other_types_are_refused_as_code_would_be_compiled_for_them():
    field, state = PackedWeights(), State("Weights")
    field.put(state, "weights", np.ones(4, dtype=np.float32))
    state.arrays["weights.book"] = state.arrays["weights.book"].astype(np.float64)
    with pytest.raises(InputError, match="expected weights of type float32"):
        field.take(state, "weights")


def test_parameters_of_submodels_that_change_no_result_are_not_among_those_that_do():
    alone, together = (
        tw.DependencyParser(scorer=tw.NeuralScorer(units=8, n_jobs=n_jobs), combine="sum", n_jobs=n_jobs)
        for n_jobs in (1, 2)
    )
    assert repr(alone.result_params()) == repr(together.result_params())
    assert alone.result_params()["scorer"].units == 8
