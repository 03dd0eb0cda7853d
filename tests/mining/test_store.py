from pathlib import Path

import numpy as np
import pytest

from treewright.mining.store import ArrayStore, load


def test_arrays_stay_in_memory_up_to_the_limit():
    store = ArrayStore(100)
    array = np.arange(10, dtype=np.int64)
    assert store.keep(array) is array
    assert (store.n_bytes, store.n_bytes_on_disk) == (80, 0)


def test_arrays_beyond_the_limit_are_files_with_the_same_values(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    store = ArrayStore(100)
    arrays = [np.arange(size, dtype=np.int32).reshape(-1, 2) for size in (20, 30, 40)]
    kept = [store.keep(array) for array in arrays]
    assert (store.n_bytes, store.n_bytes_on_disk) == (80, 280)
    for array, found in zip(arrays, kept, strict=True):
        np.testing.assert_array_equal(array, load(found))
    assert sum(path.stat().st_size for path in tmp_path.rglob("*") if path.is_file()) == 280
    store.close()


def test_closing_removes_the_files(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    store = ArrayStore(0)
    store.keep(np.arange(5))
    store.close()
    assert not list(Path(tmp_path).iterdir())
    assert store.n_bytes_on_disk == 0


def test_without_a_limit_nothing_goes_to_disk():
    store = ArrayStore()
    store.keep(np.zeros(1 << 20))
    assert store.n_bytes_on_disk == 0


@pytest.mark.parametrize("limit", [None, 0])
def test_a_span_of_an_array_is_loaded_by_itself(limit):
    store = ArrayStore(limit)
    array = np.arange(30, dtype=np.int32).reshape(10, 3)
    store.keep(np.arange(7))
    np.testing.assert_array_equal(load(store.keep(array), (4, 7)), array[4:7])
    store.close()
