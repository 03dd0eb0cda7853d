"""Compilation to machine code, once for each function that Python calls.

Numba optimises each function and translates it to machine code, and does so again within each function that
calls it, directly or indirectly. Here, a function that is called by compiled code remains LLVM intermediate
code until it is linked into the function that Python calls; only the linked code is optimised and translated.
This reduces the time to compile the parsing functions from 60 to 28 CPU seconds (`benchmarks/cold_start.py
parse`).
"""

import gc
from contextlib import contextmanager

from llvmlite import binding
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler
from numba.core.environment import lookup_environment

ENVIRONMENT = "_ZN08NumbaEnv"
"""Prefix of the variables that hold the Python constants of a function."""


class _LateLibrary(JITCodeLibrary):
    """A library whose code is optimised only after all of it has been linked."""

    def _optimize_functions(self, module):
        module.data_layout = self._codegen._data_layout


class EntryLibrary(_LateLibrary):
    """The machine code of a function that Python calls, including all functions that it calls."""

    def finalize(self):
        """Link, optimise and translate all functions."""
        called, self._linking_libraries = self._linking_libraries, []
        for library in sort_by_calls(called):
            self._reload_init.update(library._reload_init)
            self._final_module.link_in(_module_of(library), preserve=True)
        super().finalize()
        for variable in self._final_module.global_variables:
            if variable.name.startswith(ENVIRONMENT):
                environment = lookup_environment(variable.name)
                if environment is not None:
                    self._codegen.set_env(variable.name, environment)

    def serialize_using_object_code(self):
        """Return the data to store on disk: machine code, and function names without intermediate code.

        Numba would also store the intermediate code, for functions that call this one; here, `CalledLibrary`
        holds it.
        """
        self._ensure_finalized()
        names = [each.name for each in self._final_module.functions if _is_exported(each)]
        stubs = "\n".join(f'define void @"{name}"() {{ ret void }}' for name in names)
        return self.name, "object", (self._get_compiled_object(), binding.parse_assembly(stubs).as_bitcode())


class CalledLibrary(_LateLibrary):
    """The intermediate code of a function that is called by compiled code."""

    def __init__(self, codegen, name):
        super().__init__(codegen, name)
        self._entry = None

    @property
    def codegen(self):
        """Numba's code generator."""
        return _WithoutEnvironments(self._codegen)

    def finalize(self):
        """Allow the linker to drop functions that are never called."""
        for function in self._final_module.functions:
            if _is_exported(function):
                function.linkage = "linkonce_odr"
        self._finalized = True

    def get_pointer_to_function(self, name):
        """Return the address of a function; 0 if it is not defined here."""
        if not any(each.name == name for each in self.get_defined_functions()):
            return 0
        return self._as_entry().get_pointer_to_function(name)

    def _get_module_for_linking(self):
        """Return the code to link into functions of other packages, such as Numba, that call this one."""
        return self._as_entry()._get_module_for_linking()

    def _as_entry(self):
        if self._entry is None:
            self._entry = EntryLibrary(self._codegen, self.name)
            module = self._final_module.clone()
            for function in module.functions:
                if not function.is_declaration:
                    function.linkage = "external"
            self._entry.add_llvm_module(module)
            self._entry._linking_libraries = self._linking_libraries
            self._entry.finalize()
        return self._entry


class EntryCompiler(Compiler):
    """Compiler for functions that Python calls."""

    def __init__(self, typing_context, target_context, library, *rest):
        if library is None:
            library = EntryLibrary(target_context.codegen(), "entry")
            library.enable_object_caching()
        super().__init__(typing_context, target_context, library, *rest)

    def compile_extra(self, function):
        """Compile a function with all functions that it calls."""
        with _called_libraries(self.state.targetctx.codegen()), _without_collection():
            return super().compile_extra(function)


def sort_by_calls(libraries):
    """Return the libraries and all their dependencies, each library before those that it calls.

    The linker keeps an optional function only if it is called by code that was linked earlier.
    """
    seen, found = set(), []

    def visit(library):
        if library in seen:
            return
        seen.add(library)
        if isinstance(library, CalledLibrary):
            for each in library._linking_libraries:
                visit(each)
        found.append(library)

    for library in libraries:
        visit(library)
    return found[::-1]


def _module_of(library):
    if not isinstance(library, CalledLibrary):
        return library._get_module_for_linking()
    library._ensure_finalized()
    return library._final_module


def _is_exported(function):
    return not function.is_declaration and function.linkage == binding.Linkage.external


class _WithoutEnvironments:
    """Wrapper of Numba's code generator that ignores `set_env`, since there is no machine code yet."""

    def __init__(self, codegen):
        self._codegen = codegen

    def __getattr__(self, name):
        return getattr(self._codegen, name)

    def set_env(self, name, environment):
        pass


@contextmanager
def _called_libraries(codegen):
    """Create all libraries as `CalledLibrary` in this context; the caller holds Numba's compiler lock."""
    before = codegen._library_class
    codegen._library_class = CalledLibrary
    try:
        yield
    finally:
        codegen._library_class = before


@contextmanager
def _without_collection():
    """Pause Python's garbage collector, which would otherwise scan the compiler's many objects."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
