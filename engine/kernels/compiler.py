"""Numba's compiler cut down to what kernels need, which builds them in half the time.

Numba makes each function ready to be called from Python: optimised twice, compiled to machine code, wrapped. Of a
kernel we want one piece of object code, and of the many small functions in it only their LLVM code, inlined there.
"""

from __future__ import annotations

from typing import Any

from numba import _dynfunc
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase
from numba.core.compiler_machinery import PassManager, register_pass
from numba.core.typed_passes import (
    IRLegalization,
    NativeLowering,
    NoPythonBackend,
    NopythonTypeInference,
    PreLowerStripPhis,
)
from numba.core.untyped_passes import (
    DeadBranchPrune,
    FixupArgs,
    GenericRewrites,
    IRProcessing,
    ReconstructSSA,
    RewriteSemanticConstants,
    TranslateByteCode,
)


class _Part(JITCodeLibrary):
    """LLVM code of a function that only kernels call: linked into them, and not optimised or compiled before that."""

    def _optimize_functions(self, ll_module: Any) -> None:
        ll_module.data_layout = self._codegen._data_layout

    def _optimize_final_module(self) -> None:
        pass

    def _finalize_final_module(self) -> None:
        self._finalized = True


class _Whole(JITCodeLibrary):
    """LLVM code of a kernel with all its parts: optimised once (Numba would do so twice, for reference counts)."""

    def _optimize_functions(self, ll_module: Any) -> None:
        ll_module.data_layout = self._codegen._data_layout

    def _optimize_final_module(self) -> None:
        passes, builder = self._codegen._module_pass_manager()
        passes.run(self._final_module, builder)


@register_pass(mutates_CFG=True, analysis_only=False)
class _LowerPart(NativeLowering):
    """Lowering without machine code: what a caller needs of a part is its LLVM code, and a key to find it by."""

    _name = "lower_part"

    def run_pass(self, state: Any) -> bool:
        state.library = _Part(state.targetctx.codegen(), state.func_id.func_qualname)
        state.flags.no_compile = True
        super().run_pass(state)
        fndesc, no_address = state.cr.fndesc, 0
        if not state.flags.forceinline:
            state.library.get_function(fndesc.llvm_func_name).add_function_attribute("noinline")
        name = state.func_id.func_name
        key = _dynfunc.make_function(fndesc.lookup_module(), name, "", no_address, state.cr.env, (state.library,))
        state.targetctx.insert_user_function(key, fndesc, [state.library])
        state.cr = state.cr._replace(cfunc=key)
        return True


@register_pass(mutates_CFG=True, analysis_only=False)
class _LowerWhole(NativeLowering):
    _name = "lower_whole"

    def run_pass(self, state: Any) -> bool:
        state.library = _Whole(state.targetctx.codegen(), state.func_id.func_qualname)
        state.library.enable_object_caching()
        super().run_pass(state)
        return True


class KernelCompiler(CompilerBase):
    """Numba's passes as far as kernels need them: no closures, no arrays, no Python objects."""

    lowering: type[NativeLowering] = _LowerWhole

    def define_pipelines(self) -> list[PassManager]:
        passes = PassManager("kernel")
        for step in (
            TranslateByteCode,
            FixupArgs,
            IRProcessing,
            RewriteSemanticConstants,
            DeadBranchPrune,
            GenericRewrites,
            ReconstructSSA,
            NopythonTypeInference,
            PreLowerStripPhis,
            IRLegalization,
            self.lowering,
            NoPythonBackend,
        ):
            passes.add_pass(step, step._name)
        passes.finalize()
        return [passes]


class PartCompiler(KernelCompiler):
    lowering = _LowerPart
