"""Hypothesis strategies for the parts of the IR and for whole random graphs.

The graphs are well formed (they verify) but mean nothing: they are for what
must hold of any graph, such as that text reads back as it was.
"""

import math
import struct
from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import strategies as st

from irc.ir import Block, Builder, DType, EnumMember, Graph, Tensor, TensorType, Type, Value, types

# -- names and types ---------------------------------------------------------

# Any code point, lone surrogates included: a name that was not UTF-8 decodes to those.
texts = st.text(st.one_of(st.characters(codec="utf-8"), st.characters(categories=("Cs",))), max_size=8)
identifiers = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,6}(\.[0-9]{1,2})?", fullmatch=True)
odd_names = st.sampled_from(
    [
        "gpu_0/data_0",
        "a b",
        "1",
        "007",
        "x.1",
        "x..",
        "%x",
        'say "hi"',
        "naïve",
        "线",
        "a\nb",
        "\\",
        "->",
        "#",
        "Graph_0",
    ]
)
names = st.one_of(st.just(""), identifiers, odd_names, texts)

odd_dims = st.sampled_from(
    ["SS(-1)", "height / 2", "*", "3", "", "n), m", "n) = my::op(%x) #", "n), %z : Tensor):", 'n")']
)
dims = st.one_of(st.integers(0, 9), st.none(), identifiers, odd_dims)
dtypes = st.sampled_from(list(DType))
tensor_types = st.builds(TensorType, st.none() | dtypes, st.none() | st.lists(dims, max_size=4).map(tuple))
leaf_types = st.one_of(
    tensor_types,
    st.sampled_from(
        [types.INT, types.FLOAT, types.BOOL, types.STR, types.COMPLEX, types.SCALAR, types.NONE, types.ANY]
    ),
    st.sampled_from([types.DEVICE, types.FUNCTION, types.PrimType("Generator"), types.TypeVar("t")]),
    st.sampled_from([types.TypeVar("infj"), types.TypeVar("nanj"), types.TypeVar("nan"), types.PrimType("True")]),
    st.sampled_from([types.ClassType("__torch__.a.___torch_mangle_3.B"), types.EnumType("__torch__.Color")]),
)
all_types: st.SearchStrategy[Type] = st.recursive(
    leaf_types,
    lambda inner: st.one_of(
        st.builds(types.ListType, inner),
        st.builds(types.OptionalType, inner),
        st.builds(types.FutureType, inner),
        st.builds(types.DictType, inner, inner),
        st.lists(inner, max_size=3).map(lambda e: types.TupleType(tuple(e))),
        st.lists(inner, min_size=1, max_size=3).map(lambda e: types.UnionType(tuple(e))),
    ),
    max_leaves=6,
)

# -- attribute values --------------------------------------------------------

ints = st.one_of(st.integers(-(2**63), 2**63 - 1), st.integers(-3, 3))
# From bits, so that NaNs of any payload and sign occur.
floats = st.one_of(
    st.floats(), st.integers(0, 2**64 - 1).map(lambda bits: struct.unpack("<d", struct.pack("<Q", bits))[0])
)
complexes = st.builds(complex, floats, floats)
members = st.builds(
    EnumMember,
    st.sampled_from(["__torch__.Color", "__torch__.a.___torch_mangle_3.B"]).map(types.EnumType),
    st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,6}", fullmatch=True),
    ints | floats | texts | st.booleans(),
)
scalars = st.one_of(ints, floats, complexes, st.booleans(), texts, st.none(), members)
values: st.SearchStrategy[Any] = st.recursive(
    scalars | all_types,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.lists(inner, max_size=3).map(tuple), st.dictionaries(texts, inner, max_size=2)
    ),
    max_leaves=6,
)

shapes = st.lists(st.integers(0, 4), max_size=3).map(tuple).filter(lambda s: math.prod(s) <= 16)


def _bits(dtype: DType) -> int:
    """Bits of an element that NumPy's one or more bytes really use."""
    return dtype.bits if dtype.bits < 8 else 8 * dtype.numpy.itemsize


@st.composite
def arrays(draw: st.DrawFn, dtype: DType, shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    """An array of any bit patterns that elements of ``dtype`` can have."""
    count = math.prod(shape)
    if dtype is DType.STRING:
        items = np.empty(count, object)
        items[:] = draw(st.lists(texts, min_size=count, max_size=count))
        return items.reshape(shape)
    if dtype is DType.BOOL:
        return np.array(draw(st.lists(st.booleans(), min_size=count, max_size=count)), bool).reshape(shape)
    bits = _bits(dtype)
    patterns = draw(st.lists(st.integers(0, 2**bits - 1), min_size=count, max_size=count))
    if bits < 8 and dtype.is_integer:  # ml_dtypes extends the sign through the byte
        low = -(2 ** (bits - 1)) if dtype.label.startswith("Int") else 0
        return np.array([p + low for p in patterns], np.int64).astype(dtype.numpy).reshape(shape)
    raw = b"".join(p.to_bytes(dtype.numpy.itemsize, "little") for p in patterns)
    return np.frombuffer(raw, dtype.numpy).reshape(shape)


@st.composite
def tensors(draw: st.DrawFn, dtype: DType | None = None, shape: tuple[int, ...] | None = None) -> Tensor:
    """A nameless tensor: dense, splat or absent."""
    dtype = draw(dtypes) if dtype is None else dtype
    shape = draw(shapes) if shape is None else shape
    form = draw(st.sampled_from(["dense", "dense", "splat", "absent"]))
    if form == "absent":
        return Tensor(dtype, shape)
    if form == "splat":
        return Tensor.splat(dtype, draw(st.just(shape) | st.just((512, 1024))), draw(arrays(dtype, ()))[()])
    return Tensor(dtype, shape, array=draw(arrays(dtype, shape)))


# -- graphs ------------------------------------------------------------------

_DEFAULT_FLOATS = types.tensor(DType.FLOAT, (2, 3))


class _Maker:
    """Draws nodes into a graph. ``scope`` holds the values visible at the insertion point."""

    def __init__(self, draw: st.DrawFn, graph: Graph, budget: int) -> None:
        self.draw = draw
        self.graph = graph
        self.budget = budget
        self.builder = Builder(graph)
        self.scope: list[Value] = []

    def pick(self, kind: Callable[[Type], bool], make: Callable[[], Value]) -> Value:
        """A visible value whose type is of the ``kind``, or a new one."""
        found = [v for v in self.scope if kind(v.type)]
        return self.draw(st.sampled_from(found)) if found else make()

    def name(self) -> str:
        return self.draw(names)

    def add(self, kind: str, inputs: list[Value], of_types: list[Type], **more: Any) -> list[Value]:
        node = self.builder.node(kind, inputs, of_types, names=[self.name() for _ in of_types], **more)
        if self.draw(st.booleans()):
            node.name = self.draw(texts)
            node.scope = self.draw(texts)
        self.scope += node.outputs
        return list(node.outputs)

    def constant(self, value: Any, of_type: Type) -> Value:
        return self.add("prim::Constant", [], [of_type], attributes={} if value is None else {"value": value})[0]

    def tensor(self) -> Value:
        return self.pick(lambda t: t == _DEFAULT_FLOATS, lambda: self.weight(_DEFAULT_FLOATS))

    def weight(self, of_type: TensorType) -> Value:
        assert of_type.dtype is not None and of_type.static_shape is not None
        tensor = Tensor(of_type.dtype, of_type.static_shape, array=np.ones(of_type.static_shape, of_type.dtype.numpy))
        return self.constant(self.graph.weights.add(self.draw(texts) or "w", tensor), of_type)

    def int(self) -> Value:
        return self.pick(lambda t: t == types.INT, lambda: self.constant(self.draw(ints), types.INT))

    def bool(self) -> Value:
        return self.pick(lambda t: t == types.BOOL, lambda: self.constant(self.draw(st.booleans()), types.BOOL))

    def tensor_list(self) -> Value:
        of_type = types.ListType(_DEFAULT_FLOATS)
        return self.pick(lambda t: t == of_type, lambda: self.list_construct()[0])

    # -- one node each

    def pointwise(self) -> None:
        if self.draw(st.booleans()):
            self.add("onnx::Add", [self.tensor(), self.tensor()], [_DEFAULT_FLOATS], version=14)
        else:
            self.add("aten::relu", [self.tensor()], [_DEFAULT_FLOATS])

    def view(self) -> None:
        self.add("aten::t", [self.tensor()], [types.tensor(DType.FLOAT, (3, 2))])

    def in_place(self) -> None:
        self.add("aten::relu_", [self.tensor()], [_DEFAULT_FLOATS])

    def no_output(self) -> None:
        self.add("prim::Print", [self.tensor()], [])

    def list_construct(self) -> list[Value]:
        items = [self.tensor() for _ in range(self.draw(st.integers(0, 3)))]
        return self.add("prim::ListConstruct", items, [types.ListType(_DEFAULT_FLOATS)])

    def append(self) -> None:
        items = self.tensor_list()
        self.add("aten::append", [items, self.tensor()], [items.type])

    def item(self) -> None:
        self.add("aten::__getitem__", [self.tensor_list(), self.int()], [_DEFAULT_FLOATS])

    def tuple_and_back(self) -> None:
        items = [self.tensor(), self.int()]
        (made,) = self.add("prim::TupleConstruct", items, [types.TupleType(tuple(v.type for v in items))])
        self.add("prim::TupleUnpack", [made], [v.type for v in items])

    def any_constant(self) -> None:
        value, of_type = self.draw(
            st.one_of(
                st.tuples(ints, st.just(types.INT)),
                st.tuples(floats, st.just(types.FLOAT)),
                st.tuples(complexes, st.just(types.COMPLEX)),
                st.tuples(st.booleans(), st.just(types.BOOL)),
                st.tuples(texts, st.sampled_from([types.STR, types.DEVICE])),
                st.tuples(st.none(), st.just(types.NONE) | st.builds(types.OptionalType, all_types)),
                st.tuples(st.lists(ints, max_size=3), st.just(types.ListType(types.INT))),
                st.tuples(st.lists(st.lists(floats, max_size=2)), st.just(types.ListType(types.ListType(types.FLOAT)))),
                st.tuples(st.tuples(ints, texts), st.just(types.TupleType((types.INT, types.STR)))),
                tensors().map(lambda t: (t, t.type)),
                tensors().map(lambda t: (t, types.TensorType(t.dtype))),
                tensors().map(lambda t: ([t], types.ListType(types.TENSOR))),
            )
        )
        self.constant(value, of_type)

    def opaque(self) -> None:
        """An operator irc does not know, with attributes of all kinds and odd names."""
        attributes = self.draw(st.dictionaries(texts, values | tensors() | all_types, max_size=3))
        kind = self.draw(
            st.sampled_from(["com.example::Op", "my::op_0", "my::op", "weird domain/1::Op", "a::b::c", 'q"::\n'])
        )
        version = self.draw(st.none() | st.integers(1, 30))
        of_types = self.draw(st.lists(all_types, max_size=3))
        self.add(kind, self.draw(self.some_values()), of_types, attributes=attributes, version=version)

    def some_values(self) -> st.SearchStrategy[list[Value]]:
        return st.lists(st.sampled_from(self.scope), max_size=3) if self.scope else st.just([])

    # -- nodes with blocks and graphs

    def inside(self, block: Block, returns: Callable[[], list[Value]]) -> None:
        """Fill ``block`` with nodes, then return what ``returns`` gives."""
        builder, scope = self.builder, self.scope
        self.builder, self.scope = Builder(self.graph, block), [*scope, *block.params]
        self.some_nodes()
        block.set_returns(returns())
        self.builder, self.scope = builder, scope

    def nested(self, kind: str, inputs: list[Value], of_types: list[Type]) -> Any:
        node = self.graph.create(kind, inputs, of_types, names=[self.name() for _ in of_types])
        return node.insert_before(self.builder.point)

    def if_(self) -> None:
        outputs = self.draw(st.integers(0, 2))
        node = self.nested("prim::If", [self.bool()], [_DEFAULT_FLOATS] * outputs)
        for _ in range(2):
            self.inside(node.add_block(), lambda: [self.tensor() for _ in range(outputs)])
        self.scope += node.outputs

    def loop(self) -> None:
        carried = [self.tensor() for _ in range(self.draw(st.integers(0, 2)))]
        node = self.nested("prim::Loop", [self.int(), self.bool(), *carried], [_DEFAULT_FLOATS] * len(carried))
        block = node.add_block()
        block.add_param(types.INT, self.name())
        for _ in carried:
            block.add_param(_DEFAULT_FLOATS, self.name())
        self.inside(block, lambda: [self.bool(), *(self.tensor() for _ in carried)])
        self.scope += node.outputs

    def group(self) -> None:
        inputs = [self.tensor() for _ in range(self.draw(st.integers(0, 2)))]
        graph = Graph(self.draw(st.just("main") | texts), self.graph.weights)
        inner = _Maker(self.draw, graph, self.budget // 2)
        inner.scope = [graph.add_input(v.type, self.name()) for v in inputs]
        inner.some_nodes()
        graph.set_outputs([inner.tensor()])
        self.budget -= self.budget // 2
        self.add("prim::FusionGroup", inputs, [_DEFAULT_FLOATS], attributes={"Subgraph": graph})

    def graph_attribute(self) -> None:
        graph = Graph("main", self.graph.weights)
        graph.set_outputs([graph.add_input(types.INT, self.name())])
        self.add("my::op", [], [types.INT], attributes={"body": graph, "since_version": 1})

    def some_nodes(self) -> None:
        while self.budget > 0 and self.draw(st.integers(0, 3)):
            self.budget -= 1
            self.draw(st.sampled_from(_NODES))(self)


_NODES: list[Callable[[_Maker], Any]] = [
    _Maker.pointwise,
    _Maker.view,
    _Maker.in_place,
    _Maker.no_output,
    _Maker.list_construct,
    _Maker.append,
    _Maker.item,
    _Maker.tuple_and_back,
    _Maker.any_constant,
    _Maker.opaque,
    _Maker.if_,
    _Maker.loop,
    _Maker.group,
    _Maker.graph_attribute,
]


@st.composite
def graphs(draw: st.DrawFn, max_nodes: int = 12) -> Graph:
    """A random graph of about ``max_nodes`` nodes at most, which verifies."""
    graph = Graph(draw(st.just("main") | texts))
    maker = _Maker(draw, graph, max_nodes)
    for of_type in draw(st.lists(st.just(_DEFAULT_FLOATS) | all_types, max_size=3)):
        maker.scope.append(graph.add_input(of_type, draw(names)))
    maker.some_nodes()
    graph.set_outputs(draw(maker.some_values()))
    return graph
