import numpy as np
import pytest
from sklearn.base import clone

import treewright as tw
from treewright.errors import InputError
from treewright.progress import messages_to
from treewright.srl.arguments import argument_trees
from treewright.srl.roles import KERNELS


def arguments(n_sentences=120, random_state=0):
    bank = tw.make_treebank(n_sentences=n_sentences, random_state=random_state)
    return tw.find_arguments(bank.constituents, bank.propositions).arguments


@pytest.fixture(scope="module")
def train():
    return arguments()


@pytest.fixture(scope="module")
def test():
    return arguments(40, random_state=1)


@pytest.fixture(scope="module")
def guess(train, test):
    """The share of the most frequent role."""
    labels = [each.label for each in train]
    return sum(each.label == max(set(labels), key=labels.count) for each in test) / len(test)


@pytest.mark.slow_cases
@pytest.mark.parametrize("kernel", KERNELS)
def test_each_kernel_learns_and_is_the_same_after_saving(kernel, train, test, guess, tmp_path):
    more = {"n_fragments": 200} if "fragments" in kernel else {"threshold": 3.0} if kernel == "mined" else {}
    classifier = tw.RoleClassifier(kernel, features="standard", **more).fit(train)
    predicted = classifier.predict(test)
    assert classifier.score(test) > guess + 0.05
    classifier.save(tmp_path / "roles.tw")
    assert tw.load(tmp_path / "roles.tw").predict(test) == predicted


def test_a_kernel_of_the_user_is_one_of_trees(train, test):
    kernel = tw.SubsetTreeKernel(decay=0.4, normalize=True)
    own = tw.RoleClassifier(kernel).fit(train)
    assert own.predict(test) == tw.RoleClassifier("sst").fit(train).predict(test)


def test_a_machine_of_subset_trees_is_that_of_the_trees_of_arguments(train, test):
    kernel = tw.SubsetTreeKernel(decay=0.4, normalize=True)
    machine = tw.TreeKernelClassifier(kernel=kernel, C=5.0, tol=1e-2).fit(
        argument_trees(train), [each.label for each in train]
    )
    values = tw.RoleClassifier("sst").fit(train).decision_function(test)
    np.testing.assert_allclose(values, machine.decision_function(argument_trees(test)))


@pytest.mark.parametrize("kernel", ["sst", "mined"])
def test_progress_is_told_in_words(kernel, train):
    lines = []
    with messages_to(lines.append):
        tw.RoleClassifier(kernel, features="standard").fit(train)
    assert lines
    assert all(isinstance(line, str) for line in lines)


def test_merged_adjuncts_are_one_class(train):
    merged = tw.RoleClassifier("linear", adjuncts="merged").fit(train)
    assert "ARGM" in merged.classes_
    assert not any(label.startswith("ARGM-") for label in merged.classes_)


@pytest.mark.parametrize("kernel", ["linear", "fragments", "linear+fragments"])
def test_reasons_add_up_to_the_decision_of_linear_models(kernel, train, test):
    more = {"n_fragments": 100} if "fragments" in kernel else {}
    classifier = tw.RoleClassifier(kernel, features="standard", **more).fit(train)
    label = classifier.classes_[0]
    reasons = classifier.explain(test[0], 10_000, label=label)
    intercept = classifier.model_.intercept_[0]
    expected = classifier.decision_function(test[:1])[0, 0]
    assert sum(reason.weight for reason in reasons) + intercept == pytest.approx(expected, abs=1e-4)


def test_reasons_of_a_sum_are_fragments_and_features_and_add_up(train, test):
    classifier = tw.RoleClassifier("linear+sst", features="standard", weight=2.0).fit(train)
    label = classifier.classes_[1]
    reasons = classifier.explain(test[0], 100_000, label=label)
    assert {"(", "p"} <= {reason.name[0] for reason in reasons}
    expected = classifier.decision_function(test[:1])[0, 1]
    assert sum(reason.weight for reason in reasons) + classifier.model_.intercept_[1] == pytest.approx(
        expected
    )


def test_reasons_of_mined_conjunctions_add_up_to_the_decision(train, test):
    classifier = tw.RoleClassifier("mined", features="standard", threshold=3.0).fit(train)
    reasons = classifier.explain(test[0], 100_000, label=classifier.classes_[1])
    expected = classifier.decision_function(test[:1])[0, 1] - classifier.model_.intercept_[1]
    assert sum(reason.weight for reason in reasons) == pytest.approx(expected)


def test_reasons_of_tree_kernels_are_fragments(train, test):
    reasons = tw.RoleClassifier("sst").fit(train).explain(test[0], 3)
    assert len(reasons) == 3
    assert all(reason.name.startswith("(") for reason in reasons)


def test_one_role_alone_is_always_found(train):
    one = [each._replace(label="ARG0") for each in train[:5]]
    assert tw.RoleClassifier("sst").fit(one).predict(train[5:7]) == ["ARG0", "ARG0"]


def test_a_copy_has_the_same_options():
    options = tw.RoleClassifier("pt", weight=3.0, random_state=4).get_params()
    assert clone(tw.RoleClassifier("pt", weight=3.0, random_state=4)).get_params() == options


def test_no_argument_has_no_role(train):
    assert tw.RoleClassifier("linear").fit(train).predict([]) == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kernel": "cubic"}, "kernel is 'cubic'"),
        ({"features": "colour"}, "template 'colour' has 'colour'"),
        ({"adjuncts": "both"}, "adjuncts is 'both'"),
        ({"C": 0}, "C is 0"),
        ({"weight": -1}, "weight is -1"),
        ({"n_jobs": 0}, "n_jobs is 0"),
        ({"tol": float("nan")}, "tol is nan"),
        ({"threshold": -1}, "threshold is -1"),
    ],
)
def test_wrong_options_are_refused(options, message, train):
    with pytest.raises(InputError, match=message):
        tw.RoleClassifier(**options).fit(train)


def test_arguments_without_roles_are_refused(train):
    with pytest.raises(InputError, match="no arguments; expected at least one"):
        tw.RoleClassifier().fit([])
    with pytest.raises(InputError, match=r"arguments\[0\] is of type ConstTree; expected a list of Argument"):
        tw.RoleClassifier().fit([train[0].tree])
    with pytest.raises(InputError, match="argument 1 has no label"):
        tw.RoleClassifier().fit([train[0], train[1]._replace(label=None)])


def test_a_classifier_that_was_not_trained_says_so(train):
    with pytest.raises(InputError, match="this RoleClassifier is not fitted"):
        tw.RoleClassifier().predict(train)
