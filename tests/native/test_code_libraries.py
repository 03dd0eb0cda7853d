import numba
import numpy as np
import pytest

from treewright.native.code_libraries import CalledLibrary, EntryLibrary, sort_by_calls
from treewright.native.compiling import compiled, in_place

pytestmark = pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="compilation is switched off")


@in_place
def halve(number):
    return number // 2


@compiled
def count_halvings(number):
    steps = np.zeros(2, np.int64)
    while number > 0:
        number = halve(number)
        steps[0] += 1
    return steps


@compiled
def repeat(number, n_times):
    total = np.zeros(2, np.int64)
    for _ in range(n_times):
        total += count_halvings(number)
    return total


def libraries_of(function):
    (found,) = function.overloads.values()
    return found.library


def test_functions_call_each_other_and_are_called_from_python():
    assert repeat(9, 3).tolist() == [12, 0]
    assert count_halvings(9).tolist() == [4, 0]
    assert halve(9) == 4


def test_a_function_is_machine_code_only_if_python_calls_it():
    @in_place
    def called(number):
        return number + 1

    @in_place
    def entry(number):
        return called(called(number))

    entry._cache.disable()
    assert entry(3) == 5
    assert isinstance(libraries_of(entry), EntryLibrary)
    assert not called.overloads


def test_functions_of_other_packages_use_what_was_compiled_here_first():
    @compiled
    def ours(n):
        return np.full((n, n, n), 2, np.int16)

    @numba.njit
    def theirs(n):
        return np.full((n, n, n), 2, np.int16)

    ours._cache.disable()
    assert np.array_equal(ours(2), theirs(2))
    with pytest.raises(ValueError, match="negative dimensions"):
        theirs(-1)


def test_each_library_is_linked_before_those_that_it_calls():
    codegen = numba.core.registry.cpu_target.target_context.codegen()
    with numba.core.compiler_lock.global_compiler_lock:
        lowest, middle, highest = (CalledLibrary(codegen, name) for name in ("a", "b", "c"))
        middle.add_linking_library(lowest)
        highest.add_linking_library(lowest)
        highest.add_linking_library(middle)
    assert sort_by_calls([lowest, highest]) == [highest, middle, lowest]
