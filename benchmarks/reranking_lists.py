"""Other lists and other weights for the reranker, compared on the sentences of `reranking_control.py`.

    python benchmarks/reranking_lists.py TREEBANK --cache FOLDER [--sentences 3000] [--order 1] [--jobs 2]
        [--ways mined,mira,lists25,lists50,lists63,again] [--part dev] [--results FILE]

Each way differs from the first in one thing. `mined` is the default: sub feature trees, lists of 10 and a
log-linear model. `mira` learns the weights of the same features by MIRA (passive-aggressive updates with the
number of wrong heads as the cost, averaged). `lists25` to `lists63` use longer lists in training and in
parsing; 63 trees are the most that a reranker takes. `again` makes the lists again with the current model:
rerankers of the two halves of the training documents each choose the best 10 of 50 trees of the other half,
and a second reranker learns to correct them. The parser, the folds and the cache are those of
`reranking_control.py`; gains are over the first trees of the lists.
"""

import argparse
import time
from pathlib import Path

import numpy as np
from reranking_control import K, Rows, compare, take, train

import treewright as tw
from treewright.data.documents import deal_folds, resolve_fold_by
from treewright.metrics.significance import significance
from treewright.mining.problem import list_problem
from treewright.progress import messages_to
from treewright.rerank.candidates import CandidateLists
from treewright.rerank.jackknife import jackknife_lists
from treewright.rerank.linear import MIN_PURITY, PURITY_POWER, LinearScorer, measure_purity, take_columns
from treewright.rerank.training import RerankerTrainer
from treewright.rerank.tuning import combine, tune

LONG = 50
EPOCHS = 10
LIMITS = (0.0003, 0.001, 0.003, 0.01)
"""Largest steps of MIRA to choose from."""


class Lists:
    """Training lists with gold trees, and the lists that are reranked."""

    def __init__(self, training, gold, test, test_gold):
        self.training, self.gold = training, gold
        self.test, self.test_gold = test, test_gold

    def shortened(self, k):
        """Return the first trees of all lists."""
        return Lists(self.training.shortened(k), self.gold, self.test.shortened(k), self.test_gold)

    def part(self, numbers):
        """Return some of the training lists, and all others."""
        gold = [self.gold[number] for number in numbers]
        return Lists(self.training.select(numbers), gold, self.test, self.test_gold)


class MiraScorer(LinearScorer):
    """The features of a `LinearScorer` with weights by MIRA."""

    def fit(self, lists, problem, *, checkpoint=None, client=None):
        """Select features and learn their weights."""
        rows = self.features.select(lists, problem, checkpoint=checkpoint, client=client).expanded()
        purity = measure_purity(rows, problem)
        kept = np.flatnonzero(purity >= MIN_PURITY)
        self.features.keep(kept)
        rows, alternatives = take_columns(rows, kept, problem.alternatives)
        costs = _wrong_heads(lists, problem)[problem.alternatives.rows]
        trust = purity[kept] ** PURITY_POWER
        self._choices = [
            _learn_by_mira(rows, alternatives, costs, trust, limit, self.random_state) for limit in LIMITS
        ]
        self.coef = self._choices[0]
        return self


def _wrong_heads(lists, problem):
    """Return the number of heads in which each tree differs from the correct tree of its list."""
    right = problem.alternatives.rows[problem.alternatives.indptr[1:] - 1]
    gold = [heads[at] for heads, at in zip(lists.heads, (right - lists.indptr[:-1]).tolist(), strict=True)]
    return np.repeat([len(each) for each in gold], np.diff(lists.indptr)) - lists.n_right(gold)


def _learn_by_mira(rows, alternatives, costs, trust, limit, random_state):
    """Return averaged weights; each step corrects the worst tree of a list, as little as necessary."""
    weights, total, n_steps = np.zeros(rows.shape[1]), np.zeros(rows.shape[1]), 0
    rng = np.random.default_rng(random_state)
    for _ in range(EPOCHS):
        for number in rng.permutation(len(alternatives.indptr) - 1).tolist():
            begin, end = alternatives.indptr[number : number + 2].tolist()
            own = rows[begin:end]
            scores = own @ weights + alternatives.base_scores[begin:end]
            losses = costs[begin:end] + scores - scores[-1]
            worst = int(losses.argmax())
            if losses[worst] > 0:
                change = (own[-1].astype(np.float64) - own[worst]).tocsr()
                columns, signs = change.indices, change.data
                reach = float((trust[columns] * signs**2).sum())
                step = min(limit, losses[worst] / reach) if reach else 0.0
                weights[columns] += step * trust[columns] * signs
                total[columns] -= n_steps * step * trust[columns] * signs
            n_steps += 1
    return weights + total / n_steps


class Model:
    """A reranker of given lists, with the weight of the base scores tuned on the lists to rerank."""

    def __init__(self, parser, lists, jobs, scorer=LinearScorer):
        reranker = tw.DependencyReranker(parser=parser, significance_level=None, n_jobs=jobs)
        found = lists.training.with_gold(lists.gold)
        problem = list_problem(
            found.lists.indptr, found.right, base_scores=found.lists.scores * parser.scale_
        )
        features = RerankerTrainer(reranker)._features()
        self.scorer = scorer(features).fit(found.lists, problem, checkpoint=None)
        trials = self.scorer.trials(lists.test)
        self.tuning = tune(lists.test, lists.test_gold, trials)
        self.scorer.choose(self.tuning.number)

    def score(self, lists):
        """Return final scores."""
        return combine(lists, self.scorer.score(lists), self.tuning.beta)

    def best_of(self, lists, k):
        """Return lists of the `k` trees with the highest final scores, best first, with these as scores."""
        final = self.score(lists) / self.tuning.beta if self.tuning.beta else self.score(lists)
        chosen = [begin + np.argsort(-final[begin:end], kind="stable")[:k] for begin, end in lists.spans()]
        return CandidateLists(
            lists.trees,
            [heads[own - at] for heads, own, at in zip(lists.heads, chosen, lists.indptr, strict=False)],
            [final[own] for own in chosen],
            [lists.probabilities[own] for own in chosen],
        )


def make_again(parser, long, trees, jobs):
    """Return lists of the best trees by rerankers that have not seen them."""
    halves = [part.tolist() for part in deal_folds(trees, 2).parts]
    found = [None] * len(trees)
    for own, other in (halves, halves[::-1]):
        model = Model(parser, long.part(other).shortened(K), jobs)
        chosen = model.best_of(long.part(own).training, K)
        for number, at in zip(own, range(len(own)), strict=True):
            found[number] = chosen.select([at])
    test = Model(parser, long.shortened(K), jobs).best_of(long.test, K)
    return Lists(CandidateLists.joined(found), long.gold, test, long.test_gold)


def run(options):
    """Add a row for each way."""
    stem, rows = options.treebank, Rows(options.results)
    everything, dev, test = (
        tw.read_conllu(f"{stem}-{part}.conllu") for part in ("train", "dev", options.part)
    )
    trees = take([tree for tree in everything if len(tree)], options.sentences)
    test = [tree for tree in test if len(tree)]
    name = f"{Path(stem).name}-{len(trees)}-{options.order}"
    parser = tw.DependencyParser(order=options.order, runs=1, n_jobs=options.jobs)
    parser = train(options.cache, name, parser, trees, dev)
    folded = parser.with_params(fold_by=resolve_fold_by(parser.fold_by, trees, dev))
    cached = {"n_jobs": options.jobs, "cache": options.cache / "lists"}
    gold, test_gold = ([parser.lifted(tree).heads for tree in part] for part in (trees, test))
    right = [tree.with_heads(heads) for tree, heads in zip(test, test_gold, strict=True)]
    longest = max([LONG, *(int(way[5:]) for way in options.ways.split(",") if way.startswith("lists"))])
    whole = Lists(
        jackknife_lists(folded, trees, k=longest, **cached),
        gold,
        CandidateLists.from_structures(parser.structures(test, longest)),
        test_gold,
    )
    first = [whole.test.candidate(at) for at in whole.test.indptr[:-1].tolist()]
    told = {"treebank": Path(stem).name, "part": options.part, "sentences": len(trees)}
    told |= {"order": options.order, "bound": options.order}
    for way in options.ways.split(","):
        row, started = {**told, "way": way}, time.monotonic()
        if not rows.lacks(row):
            continue
        own = whole.shortened(int(way[5:]) if way.startswith("lists") else K)
        if way == "again":
            own = make_again(parser, whole.shortened(LONG), trees, options.jobs)
        model = Model(parser, own, options.jobs, MiraScorer if way == "mira" else LinearScorer)
        best = own.test.best(model.score(own.test))
        found = compare(significance(right, [own.test.candidate(at) for at in best.tolist()], first), None)
        uas, oracle = own.test.uas(test_gold)
        lists = {"uas": round(uas, 2), "best_of_list": round(oracle, 2)}
        gain = {"cross_validated_gain": round(model.tuning.gain, 2), "features": model.scorer.n_features}
        rows.add(row | found | gain | lists, started)


def main():
    """Run the comparison."""
    arguments = argparse.ArgumentParser()
    arguments.add_argument("treebank")
    arguments.add_argument("--cache", type=Path, required=True)
    arguments.add_argument("--sentences", type=int, default=3000)
    arguments.add_argument("--order", type=int, default=1)
    arguments.add_argument("--ways", default="mined,mira,lists25,lists50,lists63,again")
    arguments.add_argument("--part", default="dev")
    arguments.add_argument("--jobs", type=int, default=2)
    arguments.add_argument("--results", type=Path)
    options = arguments.parse_args()
    options.cache.mkdir(parents=True, exist_ok=True)
    started = time.monotonic()
    with messages_to(lambda text: print(f"# {time.monotonic() - started:.0f} s: {text}", flush=True)):
        run(options)


if __name__ == "__main__":
    main()
