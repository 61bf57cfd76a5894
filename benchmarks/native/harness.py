"""Native functions over arrays: compiled one by one, to measure their errors and speed."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import llvmlite.binding as llvm
import numpy as np
from llvmlite import ir

from irc.native.lanes import Emitter, Lanes, register_type

Array = np.ndarray[Any, Any]
PLAIN = "x86-64"


def compiled(
    emit: Callable[..., Lanes], dtype: Any, arity: int = 1, lanes: int = 32, cpu: str | None = None
) -> Callable[..., Array]:
    """A function of arrays that calls what ``emit`` emits on ``lanes`` elements at a time.

    Args:
        cpu: whose instructions are used, such as `PLAIN`; this processor's by default.
    """
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    dtype = np.dtype(dtype)
    features = llvm.get_host_cpu_features()
    has_fma = cpu is None and features.get("fma", False)
    module = ir.Module("m")
    module.triple = llvm.get_process_triple()
    vector = ir.VectorType(register_type(dtype), lanes)
    function = ir.Function(module, ir.FunctionType(vector, [vector] * arity), "f")
    function.attributes.add("noinline")
    emitter = Emitter(ir.IRBuilder(function.append_basic_block()), lanes, has_fma)
    emitter.builder.ret(emit(*(Lanes(emitter, x, dtype) for x in function.args)).value)

    size, pointer = ir.IntType(64), vector.as_pointer()
    loop = ir.Function(module, ir.FunctionType(ir.VoidType(), [pointer] * (arity + 1) + [size]), "loop")
    entry, body, done = (loop.append_basic_block(x) for x in ("entry", "body", "done"))
    ir.IRBuilder(entry).branch(body)
    builder = ir.IRBuilder(body)
    index = builder.phi(size)
    index.add_incoming(ir.Constant(size, 0), entry)
    taken = [builder.load(builder.gep(x, [index]), align=dtype.itemsize) for x in loop.args[:arity]]
    builder.store(builder.call(function, taken), builder.gep(loop.args[arity], [index]), align=dtype.itemsize)
    following = builder.add(index, ir.Constant(size, 1))
    index.add_incoming(following, body)
    builder.cbranch(builder.icmp_unsigned("<", following, loop.args[-1]), body, done)
    ir.IRBuilder(done).ret_void()

    parsed = llvm.parse_assembly(str(module))
    parsed.verify()
    target = llvm.Target.from_default_triple()
    machine = target.create_target_machine(
        cpu or llvm.get_host_cpu_name(), "" if cpu else features.flatten(), 2, jit=True
    )
    options = llvm.create_pipeline_tuning_options(speed_level=2)
    passes = llvm.create_pass_builder(machine, options)
    passes.getModulePassManager().run(parsed, passes)
    engine = llvm.create_mcjit_compiler(parsed, machine)
    engine.finalize_object()
    address = engine.get_function_address("loop")
    call = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * (arity + 1), ctypes.c_size_t)(address)

    def run(*arrays: Array, out: Array | None = None) -> Array:
        count = len(arrays[0])
        blocks = -(-count // lanes)
        if blocks * lanes != count:
            arrays = tuple(np.concatenate((x, np.ones(blocks * lanes - count, dtype))) for x in arrays)
            out = None
        if out is None:
            out = np.empty(blocks * lanes, dtype)
        assert engine  # which owns the code
        call(*(x.ctypes.data for x in arrays), out.ctypes.data, blocks)
        return out[:count]

    return run
