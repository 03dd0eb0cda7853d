from ._version import __version__ as __version__
from .data.conllu import iter_conllu as iter_conllu
