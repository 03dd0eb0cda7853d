"""Sparse matrices as data frames, for transformers whose `set_output` asks for them."""

from typing import Any

from scipy.sparse import csr_matrix
from sklearn.utils._set_output import _get_output_config, check_library_installed

from treewright.errors import InputError


def in_set_output(transformer: Any, found: csr_matrix, X: object) -> Any:  # noqa: ANN401
    """Return a sparse result of `transform` in the container that `set_output` asks for.

    For pandas, this is a data frame with sparse columns and the index of `X`; scikit-learn adds the names.
    """
    container = _get_output_config("transform", transformer)["dense"]
    if container == "default":
        return found
    if container != "pandas":
        remedy = ", or sparse_output=False" if hasattr(transformer, "sparse_output") else ""
        raise InputError(
            f"set_output(transform={container!r}) has no sparse columns; "
            f"expected 'pandas' or 'default'{remedy}"
        )
    pandas = check_library_installed("pandas")
    index = X.index if isinstance(X, pandas.DataFrame | pandas.Series) else None
    return pandas.DataFrame.sparse.from_spmatrix(found, index=index)
