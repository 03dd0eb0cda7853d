"""Results are the same to the bit whatever the number of threads of BLAS."""

import os
import subprocess
import sys
import threading

import numpy as np
import pytest
from scipy.sparse import random as random_sparse
from threadpoolctl import ThreadpoolController, threadpool_limits

from treewright.data.bracketed import write_brackets
from treewright.data.synthetic import make_treebank
from treewright.kernels.decisions import make_gradient_list
from treewright.kernels.derived import TopRerankingKernel
from treewright.kernels.indices import Words
from treewright.kernels.inputs import multiply
from treewright.kernels.machines import _inverse_root
from treewright.kernels.platt import fit_sigmoid
from treewright.kernels.support import multiply as multiply_kernel
from treewright.learn.kernel import KernelPerceptron
from treewright.learn.ranking import LogLinearRanker
from treewright.learn.structured import StructuredSVM
from treewright.learn.vectors import learn_vectors
from treewright.learn.voted import KernelVotedPerceptron, UpdateHistory, VotedPerceptron, count_votes
from treewright.native.learn.proximal import Alternatives
from treewright.scale import iter_jobs, map_jobs, one_blas_thread

N_THREADS = 2
LONG = 30_000
"""Vectors so long are divided among threads."""
N_LISTS, LIST_SIZE = 12, 5
BOUNDS = np.arange(N_LISTS + 1) * LIST_SIZE

SAVE_RANKER = """
import sys
import numpy as np
from scipy.sparse import random
from treewright.learn.ranking import LogLinearRanker
from treewright.native.learn.proximal import Alternatives

rows = random(60, 30_000, density=0.01, format="csr", random_state=0, dtype=np.float32)
zeros, scores = np.zeros(60), np.random.default_rng(0).normal(size=60)
lists = Alternatives(np.arange(13) * 5, np.arange(60), zeros, zeros, scores)
np.save(sys.argv[1], LogLinearRanker(penalty=1.0).fit(rows, lists).coef_)
"""


def count_threads(_=None):
    """Return the numbers of threads that BLAS libraries have now."""
    libraries = ThreadpoolController().select(user_api="blas").lib_controllers
    return {library.get_num_threads() for library in libraries}


def random_numbers(*shape):
    return np.random.default_rng(0).normal(size=shape)


def random_losses():
    return np.random.default_rng(1).random(BOUNDS[-1])


def fit_log_linear():
    rows = random_sparse(BOUNDS[-1], LONG, density=0.01, format="csr", random_state=0, dtype=np.float32)
    numbers, zeros = np.arange(BOUNDS[-1]), np.zeros(BOUNDS[-1])
    lists = Alternatives(BOUNDS, numbers, zeros, zeros, random_numbers(BOUNDS[-1]))
    found = LogLinearRanker(penalty=1.0).fit(rows, lists)
    return np.append(found.coef_, found.base_weight_)


def fit_voted():
    rows = random_numbers(BOUNDS[-1], LONG)
    found = VotedPerceptron(epochs=2).fit(rows, BOUNDS, random_losses())
    return found.coef_, found.kernel_scores(rows)


def fit_kernel_voted():
    rows = random_numbers(BOUNDS[-1], LONG)

    class Inner:
        def block(self, rows_a, rows_b):
            return multiply(rows[rows_a], rows[rows_b].T)

    found = KernelVotedPerceptron(epochs=2).fit(Inner(), BOUNDS, random_losses())
    found.coef_ = random_numbers(2000)
    return found.updates_.amounts, found.kernel_scores(random_numbers(300, 2000))


def fit_structured():
    rows = random_numbers(BOUNDS[-1], LONG)
    found = StructuredSVM(max_iter=3).fit(rows, BOUNDS, random_losses())
    return found.coef_, found.objective_, found.kernel_scores(rows)


def score_kernel_perceptron():
    perceptron = KernelPerceptron()
    perceptron.coef_ = random_numbers(2000)
    return perceptron.score(random_numbers(300, 2000))


def vote():
    numbers = np.arange(2000)
    history = UpdateHistory(numbers, numbers[::-1], np.ones(2000), np.ones(2001, dtype=np.int64))
    return count_votes(history, random_numbers(300, 2000), np.zeros(300))


def learn_word_vectors():
    words = np.random.default_rng(0).zipf(1.3, size=(4000, 8)) % 1500
    vectors = learn_vectors([[str(word) for word in line] for line in words.tolist()], size=20)
    return np.array(list(vectors.values()))


def find_inverse_root():
    numbers = random_numbers(300, 300)
    return _inverse_root(300 * np.eye(300) + numbers + numbers.T)


def fit_platt():
    decisions = random_numbers(LONG)
    return fit_sigmoid(decisions, decisions + random_numbers(LONG)[::-1] > 0)


def compare_words():
    vectors = random_numbers(300, 300).astype(np.float32)
    return Words({}, vectors, None).table(range(300))


def derive_features():
    logs = -np.arange(1.0, 41.0)
    return TopRerankingKernel().features([make_gradient_list(logs, random_numbers(40, LONG))])


def multiply_vectors():
    return multiply(random_numbers(2000, 500), random_numbers(500, 300))


@pytest.mark.parametrize(
    "compute",
    [
        fit_log_linear,
        fit_voted,
        fit_kernel_voted,
        fit_structured,
        score_kernel_perceptron,
        vote,
        learn_word_vectors,
        find_inverse_root,
        fit_platt,
        compare_words,
        derive_features,
        multiply_vectors,
    ],
)
def test_results_do_not_depend_on_threads_of_blas(compute):
    found = []
    for n_threads in (1, N_THREADS):
        with threadpool_limits(n_threads, user_api="blas"):
            found.append(compute())
    np.testing.assert_equal(*found)


@pytest.mark.parametrize("n_columns", [1, 2, 40])
def test_kernel_products_do_not_depend_on_jobs(n_columns):
    values, factors = random_numbers(500, 2000), random_numbers(2000, n_columns)

    class Packed:
        def __len__(self):
            return len(factors)

        def compare(self, examples):
            return values[examples]

    first, *others = (
        multiply_kernel(Packed(), list(range(500)), factors, n_jobs=n_jobs) for n_jobs in (1, 2, 3, 7)
    )
    for other in others:
        np.testing.assert_array_equal(first, other)


@pytest.fixture
def several_threads():
    """Let BLAS have several threads in a test."""
    with threadpool_limits(N_THREADS, user_api="blas"):
        if count_threads() != {N_THREADS}:
            pytest.skip("BLAS has no threads here that can be set")
        yield


def test_blas_has_one_thread_inside_and_as_many_as_before_outside(several_threads):
    with one_blas_thread:
        assert count_threads() == {1}
        with one_blas_thread:
            assert count_threads() == {1}
        assert count_threads() == {1}
    assert count_threads() == {N_THREADS}
    assert one_blas_thread(count_threads)() == {1}
    assert count_threads() == {N_THREADS}


def test_an_error_restores_threads_of_blas(several_threads):
    with pytest.raises(ValueError, match="wrong"), one_blas_thread:
        raise ValueError("wrong")
    assert count_threads() == {N_THREADS}


@pytest.mark.parametrize("first_leaves_first", [True, False])
def test_the_last_of_several_threads_restores(several_threads, first_leaves_first):
    is_inside, may_leave, found = threading.Event(), threading.Event(), []

    def enter():
        with one_blas_thread:
            is_inside.set()
            may_leave.wait()
            found.append(count_threads())

    other = threading.Thread(target=enter)
    if first_leaves_first:
        with one_blas_thread:
            other.start()
            is_inside.wait()
    else:
        other.start()
        is_inside.wait()
        with one_blas_thread:
            pass
    assert count_threads() == {1}
    may_leave.set()
    other.join()
    assert found == [{1}]
    assert count_threads() == {N_THREADS}


def test_many_threads_come_and_go(several_threads):
    wrong = []

    def enter():
        for _ in range(200):
            with one_blas_thread:
                wrong.extend(count_own() - {1})

    libraries = ThreadpoolController().select(user_api="blas").lib_controllers

    def count_own():
        return {library.get_num_threads() for library in libraries}

    threads = [threading.Thread(target=enter) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert count_threads() == {N_THREADS}


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_jobs_have_one_thread_of_blas(several_threads, n_jobs):
    assert map_jobs(count_threads, [1, 2, 3], n_jobs=n_jobs) == [{1}] * 3
    assert count_threads() == {N_THREADS}


def test_threads_of_blas_are_restored_between_results(several_threads):
    for found in iter_jobs(count_threads, [1, 2]):
        assert found == {1}
        assert count_threads() == {N_THREADS}


def test_pytorch_has_one_thread_inside(several_threads):
    torch = pytest.importorskip("torch")
    before = torch.get_num_threads()
    torch.set_num_threads(N_THREADS)
    try:
        with one_blas_thread:
            assert torch.get_num_threads() == 1
            assert map_jobs(lambda _: torch.get_num_threads(), [1, 2, 3], n_jobs=2) == [1] * 3
        assert torch.get_num_threads() == N_THREADS
    finally:
        torch.set_num_threads(before)


def run_with_threads(n_threads, *arguments):
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    environment = {**os.environ, **dict.fromkeys(names, str(n_threads))}
    command = [sys.executable, *map(str, arguments)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_environment_variables_do_not_change_a_ranker(tmp_path):
    """A process of its own reads the variables when it loads BLAS."""
    paths = [tmp_path / f"{n_threads}.npy" for n_threads in (1, N_THREADS)]
    for n_threads, path in zip((1, N_THREADS), paths, strict=True):
        run_with_threads(n_threads, "-c", SAVE_RANKER, path)
    assert paths[0].read_bytes() == paths[1].read_bytes()


@pytest.mark.slow
def test_environment_variables_do_not_change_the_models_of_the_demonstration(tmp_path):
    models = []
    for n_threads in (1, N_THREADS):
        folder = tmp_path / str(n_threads)
        arguments = ("demo", "--sentences", 400, "--out", folder, "--jobs", n_threads)
        run_with_threads(n_threads, "-m", "treewright", *arguments)
        models.append((folder / "model.tw").read_bytes())
    assert models[0] == models[1]


@pytest.mark.slow
def test_environment_variables_do_not_change_a_left_corner_parser_and_its_reranker(tmp_path):
    pytest.importorskip("torch", reason="training needs PyTorch")
    trees = make_treebank(60, random_state=0).constituents
    write_brackets(trees[:45], tmp_path / "train.mrg")
    write_brackets(trees[45:], tmp_path / "dev.mrg")
    sizes = ("--units", 64, "--embedding", 32, "--epochs", 2, "--beam", 20, "--device", "cpu")
    reranking = ("--rerank", "top-rerank", "--candidates", 10)
    models = []
    for n_threads in (1, N_THREADS):
        model = tmp_path / f"{n_threads}.tw"
        sources = (tmp_path / "train.mrg", "--dev", tmp_path / "dev.mrg", "--model", model)
        options = (*sources, *sizes, *reranking, "--jobs", n_threads)
        run_with_threads(n_threads, "-m", "treewright", "train", "leftcorner", *options)
        models.append(model.read_bytes())
    assert models[0] == models[1]
