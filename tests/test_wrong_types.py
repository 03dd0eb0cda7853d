"""Arguments of wrong types: one sentence that names the argument."""

import numpy as np
import pandas as pd
import pytest

import treewright as tw
from treewright.errors import InputError, show

BANK = tw.make_treebank(6, random_state=0)
FRAME = pd.DataFrame({"a": [1.5, 2], "b": ["x", None]})
ROWS, LABELS = np.eye(4, dtype=int)[[0, 1, 2, 3] * 5], [0, 1, 0, 1] * 5
LISTS = {"indptr": [0, 2, 4], "losses": [0.5, 0, 0.5, 0]}


@pytest.mark.parametrize(
    ("use", "message"),
    [
        (lambda: tw.deprojectivize(None), "tree is of type NoneType; expected a DepTree"),
        (lambda: tw.projectivize("x"), "tree is of type str; expected a DepTree"),
        (lambda: tw.is_projective([]), "tree is of type list; expected a DepTree"),
        (lambda: tw.to_constituents([]), "tree is of type list; expected a DepTree"),
        (lambda: tw.to_nltk(3), "tree is of type int; expected a ConstTree or a DepTree"),
        (lambda: tw.argument_tree(3), "argument is of type int; expected an Argument"),
        (lambda: tw.compare_trees(3), "candidates is of type int; expected a list of trees or of candidates"),
        (lambda: tw.draw(BANK.dependencies[0], marked=3), "marked is 3; expected a list of the numbers of w"),
        (lambda: tw.draw(BANK.dependencies[0], marked="x"), "a number in marked is 'x'; expected an integer"),
        (lambda: tw.draw(BANK.dependencies[0], confidence=1), "confidence is 1; expected a list of numbers"),
        (lambda: tw.draw(BANK.dependencies[0], 3), "path is 3; expected the name of a file or a folder"),
        (lambda: tw.draw_svg(BANK.dependencies[0], title=3), "title is 3; expected a string"),
        (lambda: tw.write_conllu(BANK.dependencies, None), "target is None; expected the name of a file or"),
        (lambda: tw.write_conllu(3, "x"), "the sentences are 3; expected a list or another iterable"),
        (lambda: tw.write_brackets(["x"], "x"), "tree is of type str; expected a ConstTree"),
        (lambda: tw.write_props(["x"], "x"), "sentence is of type str; expected a PropSentence"),
        (lambda: tw.write_tree_examples(["x"], "x"), "example is of type str; expected a TreeExample"),
        (lambda: tw.read_conllu("x", single_root=3), "single_root is 3; expected one of False, True"),
        (lambda: tw.find_arguments(3, []), "trees is of type int; expected a list"),
        (lambda: tw.jackknife_lists(3, BANK.dependencies), "parser is of type int; expected a DependencyPa"),
        (lambda: tw.stack_vectors([1]), "vectors[0] is of type int; expected a list of SparseVector"),
        (
            lambda: tw.make_decision_list([[1.0]], [0], [0], "x", n_outputs=1),
            "indptr is 'x'; expected 0 followed by the end of each candidate",
        ),
        (
            lambda: tw.make_decision_list([[1.0]], [0], [0], [0, 1], n_outputs=1, distributions="x"),
            "distributions is of type str; expected a matrix of numbers, a row for each step",
        ),
        (lambda: tw.read_svmlight("x", names=3), "names is of type int; expected a list of strings"),
        (lambda: tw.merge_prefixes([]), "decisions is of type list; expected a DecisionList"),
        (lambda: tw.plot_rules([1]), "rules is of type list; expected the RuleTable that list_rules returns"),
        (
            lambda: tw.gram(tw.SubsetTreeKernel(), BANK.constituents, times=3),
            "times is of type int; expected",
        ),
        (lambda: tw.PolynomialSpace([[1, 0], [1]]), "X has rows of different lengths; expected a table of 0"),
        (lambda: tw.PolynomialSpace([1, 0]), "X is a 1-dimensional array of int64; expected 2 dimensions"),
        (lambda: tw.make_conjunctions(orders=3), "orders is of type int; expected a list of integers"),
        (lambda: tw.make_treebank(FRAME), "n_sentences is a b 0 1.5 x 1 2.0 "),
        (lambda: tw.VotedPerceptron().fit([1, 2], **LISTS), "rows is of type list; expected a 2-dimensional"),
        (
            lambda: tw.VotedPerceptron().fit(np.eye(4), ["a"], LISTS["losses"]),
            "indptr is ['a']; expected 0 followed by the end of each list",
        ),
        (
            lambda: tw.AveragedPerceptron().fit(ROWS, LABELS, classes=[3, 4]),
            "y has the label 0; expected one of classes, [3, 4]",
        ),
        (
            lambda: tw.AveragedPerceptron().fit(ROWS, LABELS, coef_init="x"),
            "coef_init is 'x'; expected numbers of the shape (1, 4)",
        ),
        (
            lambda: tw.TreeKernelClassifier().fit(BANK.constituents, [0, 1] * 3, sample_weight="x"),
            "sample_weight has 'x'; expected numbers",
        ),
        (
            lambda: tw.ConjunctionMiner(threshold=1).fit(ROWS, LABELS, sample_weight=np.inf),
            "sample_weight has inf; expected finite numbers",
        ),
        (
            lambda: tw.TableBinarizer().fit(ROWS, [[1], [2, 3]] * 10),
            "y is [[1], [2, 3], [1], [2, 3], [1], [2",
        ),
        (
            lambda: tw.Tagger().fit(BANK.dependencies, 3),
            "the sentences are of type int; expected a list of DepTree",
        ),
        (lambda: tw.Tagger().fit(BANK.dependencies, checkpoint=3), "checkpoint is 3; expected the name of a"),
        (
            lambda: tw.ConstituentParser().fit(BANK.constituents, checkpoint=[]),
            "checkpoint is []; expected t",
        ),
        (
            lambda: tw.DependencyReranker(betas=3).fit(BANK.dependencies),
            "betas is 3; expected a list, with a number of at least 0 in each place",
        ),
        (
            lambda: tw.DependencyReranker(betas=[-1]).fit(BANK.dependencies),
            "betas is -1; expected a number of at least 0",
        ),
        (lambda: tw.ConstituentReranker(kernel=[]).fit(BANK.constituents), "kernel is []; expected one of "),
        (lambda: tw.RoleClassifier(kernel=[]).fit([3]), "kernel is []; expected one of linear, "),
        (
            lambda: tw.L1BoostedTrees(penalty=ROWS).fit(ROWS, LABELS),
            "penalty is array([[1, 0, 0, 0], [0, ",
        ),
        (
            lambda: tw.TableBinarizer(categorical_features=int).fit(ROWS, LABELS),
            "categorical_features is of type type; expected a list of columns",
        ),
        (lambda: tw.RoleClassifier().fit([3]), "arguments[0] is of type int; expected a list of Argument"),
        (
            lambda: tw.RoleLabeler().fit(BANK.constituents, BANK.propositions, dev=3),
            "dev is 3; expected a pair of trees and sentences",
        ),
    ],
)
def test_a_wrong_argument_is_named_in_one_sentence(use, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError) as error:
        use()
    assert str(error.value).startswith(message)
    assert "\n" not in str(error.value)


def test_a_checkpoint_is_a_folder(tmp_path):
    path = tmp_path / "file"
    path.touch()
    with pytest.raises(InputError) as error:
        tw.Tagger(epochs=1, runs=1).fit(BANK.dependencies, checkpoint=path)
    assert str(error.value) == f"checkpoint {path} is a file; expected the name of a folder"


def test_long_values_are_shortened():
    assert show("x" * 200) == "'" + "x" * 99 + "..."
