import functools
from dataclasses import InitVar, dataclass, field, fields
from typing import ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from irc.errors import Error
from irc.ir import parse_graph
from irc.passes import PassManager, Repeat, create, names, parse_pipeline, print_pipeline, register, registry


@register
@dataclass(frozen=True)
class Optioned:
    name: ClassVar[str] = "test-optioned"
    flag: bool = False
    max_size: int = 8
    ratio: float = 0.5
    label: str = ""
    limit: int | None = None
    word: str | None = None

    def __post_init__(self) -> None:
        if self.max_size < 0:
            raise ValueError("max-size must not be negative")

    def run(self, graph, ctx) -> bool:
        return False


def one(text: str) -> Optioned:
    (found,) = parse_pipeline(text)
    assert isinstance(found, Optioned)
    return found


def test_options_are_read_by_the_type_of_the_field():
    p = one('test-optioned{flag, max-size=64,ratio=2, label="a b,c", limit=none, word=none}')
    assert p == Optioned(True, 64, 2.0, "a b,c", None, None)
    assert isinstance(p.ratio, float)
    assert one("test-optioned{flag=false,label=5,limit=3,word=x}") == Optioned(False, label="5", limit=3, word="x")
    assert one("test-optioned{}") == Optioned()


def test_word_none_is_told_from_no_word():
    assert print_pipeline((Optioned(word="none"),)) == 'test-optioned{word="none"}'
    assert one('test-optioned{word="none"}').word == "none"


OPTIONED = st.builds(
    Optioned,
    st.booleans(),
    st.integers(0, 10**20),
    st.floats(allow_nan=False),
    st.text(),
    st.none() | st.integers(),
    st.none() | st.text(),
)
PLAIN = st.sampled_from(["cse", "dce", "inline"]).map(create)


@given(st.lists(OPTIONED | PLAIN | st.builds(Repeat, st.lists(PLAIN, min_size=1).map(tuple), st.integers(1, 9))))
def test_what_is_printed_reads_back(items):
    assert parse_pipeline(print_pipeline(tuple(items))) == tuple(items)


@given(st.text('cse{}()*=," \n\\-1xµ', max_size=12))
def test_any_text_is_read_or_refused(text):
    error = None
    try:
        pipeline = parse_pipeline(text)
    except Error as e:
        error = e
    if error is None:
        assert parse_pipeline(print_pipeline(pipeline)) == pipeline
    else:
        assert error.code in ("IRC301", "IRC302", "IRC303")
        assert error.message.splitlines()[-1].strip(" ^") == ""


@pytest.mark.parametrize(
    ("text", "code", "message", "caret"),
    [
        ("inline,csee,dce", "IRC301", "did you mean 'cse'?", 7),
        ("inline,,dce", "IRC302", "expected the name of a pass, found ','", 7),
        ("inline,", "IRC302", "expected the name of a pass at the end", 7),
        ("inline dce", "IRC302", "expected ',' or the end, found 'dce'", 7),
        ("(cse", "IRC302", "expected ')' at the end", 4),
        ("(cse)", "IRC302", "expected '*' at the end", 5),
        ("(cse)*0", "IRC302", "rounds, 1 to 1000, found '0'", 6),
        ("(cse)*x", "IRC302", "rounds, 1 to 1000, found 'x'", 6),
        ("(" * 20 + "cse", "IRC302", "nested more than 16 deep", 16),
        ("test-optioned{", "IRC302", "expected an option or '}' at the end", 14),
        ("test-optioned{flag", "IRC302", "expected ',' at the end", 18),
        ("test-optioned{max-size=}", "IRC302", "expected the value of 'max-size', found '}'", 23),
        ('test-optioned{label="x', "IRC302", 'a string must end with "', 20),
        ("test-optioned{max-size}", "IRC303", "option 'max-size' needs a value", 22),
        ("test-optioned{max-size=big}", "IRC303", "option 'max-size' must be an integer, not 'big'", 23),
        ("test-optioned{limit=1.5}", "IRC303", "must be none or an integer, not '1.5'", 20),
        ("test-optioned{flag=1}", "IRC303", "must be true or false, not '1'", 19),
        ("test-optioned{maxsize=1}", "IRC303", "no option 'maxsize' (did you mean 'max-size'?)", 14),
        ("test-optioned{max_size=1}", "IRC303", "did you mean 'max-size'?", 14),
        ("test-optioned{flag,flag}", "IRC303", "'flag' is given twice", 19),
        ("test-optioned{max-size=-1}", "IRC303", "max-size must not be negative", 0),
        ("fuse{max-size=-1}", "IRC303", "pass 'fuse': max-size must not be negative, but it is -1", 0),
        ("inline{max-nodes=-2}", "IRC303", "max-nodes must not be negative", 0),
        ("canonicalize{max-rewrites=-1}", "IRC303", "max-rewrites must not be negative", 0),
        ("constant-fold{max-growth=-1}", "IRC303", "max-growth must not be negative", 0),
        ("cse{x=1}", "IRC303", "it has none", 4),
    ],
)
def test_errors_show_the_place(text, code, message, caret):
    with pytest.raises(Error) as caught:
        parse_pipeline(text)
    assert caught.value.code == code
    assert message in caught.value.message
    shown, marks = caught.value.message.splitlines()[-2:]
    assert shown == f"  {text}"
    assert marks.index("^") == caret + 2


def test_every_registered_pass_is_made_from_its_name():
    assert {"inline", "constant-fold", "constant-pool", "cse", "dce", "conv-bn-fold"} <= set(names())
    for name in names():
        made = create(name)
        assert made.name == name
        assert parse_pipeline(print_pipeline((made,))) == (made,)
        assert hash(made) == hash(create(name))  # frozen
        assert all(f.type in ("bool", "int", "float", "str") for f in fields(made)) or name == "test-optioned"


def test_unknown_pass_by_name():
    with pytest.raises(Error, match=r"no pass is called 'csse' \(did you mean 'cse'\?\); passes are: "):
        create("csse")
    with pytest.raises(Error, match=r"^IRC301: 'none' is a pipeline, not a pass; parse_pipeline gives its passes$"):
        create("none")


def test_two_passes_of_one_name():
    assert register(Optioned) is Optioned  # again the same: nothing happens

    @dataclass(frozen=True)
    class Other:
        name: ClassVar[str] = "test-optioned"

        def run(self, graph, ctx) -> bool:
            return False

    with pytest.raises(Error, match=r"IRC304.*two passes are called 'test-optioned'.*Optioned.*Other"):
        register(Other)


def made(name: object = "test-made", hint: object = int, frozen: bool = True) -> type:
    """The class of a pass."""

    def run(self, graph, ctx) -> bool:
        return False

    members = {"name": name, "__annotations__": {"size": hint}, "size": 0, "run": run}
    return dataclass(frozen=frozen)(type("Made", (), members))


def test_the_name_of_a_pass_that_is_entered_late_is_taken_from_the_beginning(monkeypatch):
    for name, path in registry._LATE.items():
        assert registry._path(type(create(name))) == path
        with monkeypatch.context() as before:
            before.delitem(registry._PASSES, name)
            with pytest.raises(Error, match=rf"IRC304.*two passes are called '{name}': {path} and {__name__}.Made"):
                register(made(name))
        with pytest.raises(Error, match=rf"IRC304.*two passes are called '{name}': {path} and {__name__}.Made"):
            register(made(name))


@pytest.mark.parametrize("name", ["none", "default"])
def test_a_pass_that_would_hide_a_pipeline_is_refused(name):
    with pytest.raises(Error, match=rf"IRC304: .*Made: a pass cannot be called '{name}': a pipeline is"):
        register(made(name))


@pytest.mark.parametrize("name", ["", "a,b", "has space", "x{", "-x", 'x"', None, 5])
def test_a_pass_that_no_pipeline_can_spell_is_refused(name):
    with pytest.raises(Error, match=r"IRC304: Made: .*: its name is .*, which a pipeline cannot spell"):
        register(made(name))


@pytest.mark.parametrize("name", ["x", "test-made", "über.pass", "2:x"])
@pytest.mark.usefixtures("own_registries")
def test_names_that_a_pipeline_can_spell(name):
    pass_class = register(made(name))
    assert parse_pipeline(f"{name},({name}{{size=3}})*2") == (pass_class(), Repeat((pass_class(3),), 2))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (Optioned(), "is not a class"),
        (lambda: None, "is not a class"),
        (type("Plain", (), {"name": "test-plain"}), "it has no method run"),
        (type("Plain", (), {"name": "test-plain", "run": lambda self, graph, ctx: False}), "not decorated with"),
        (made(frozen=False), "not decorated with"),
        (made(hint=list[int]), r"its option 'size' is of type list\[int\], not bool, int, float or str"),
        (made(hint=list[int] | None), "its option 'size' is of type"),
        (made(hint="Unheard"), "the types of its options cannot be read: name 'Unheard' is not defined"),
    ],
)
def test_what_is_no_pass_class_is_refused(given, message):
    with pytest.raises(Error, match=f"(?s)IRC304: .*cannot be registered as a pass: .*{message}"):
        register(given)


def altered(**members: object) -> type:
    """The class of a pass, with other members."""

    def run(self, graph, ctx) -> bool:
        return False

    return dataclass(frozen=True)(type("Altered", (), {"name": "test-altered", "run": run, **members}))


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ({"run": lambda self, graph: False}, r"run \(.*\.py:\d+\) must take \(self, graph, ctx\), not \(self, graph\)"),
        ({"run": lambda self, graph, *, ctx: False}, r"must take \(self, graph, ctx\), not \(self, graph, \*, ctx\)"),
        ({"run": lambda: False}, r"must take \(self, graph, ctx\), not \(\)"),
        ({"__post_init__": lambda self, extra: None}, r"__post_init__ .* must take \(self\), not \(self, extra\)"),
        ({"__annotations__": {"n": int}, "n": 1, "__init__": lambda self: None}, "made of its options: .*argument 'n'"),
        ({"__annotations__": {"n": int}, "n": field(init=False, default=1)}, "made of its options: .*argument 'n'"),
    ],
)
def test_methods_that_cannot_be_called_as_they_are_are_refused(members, message):
    with pytest.raises(Error, match=f"IRC304: Altered: this cannot be registered as a pass: .*{message}"):
        register(altered(**members))
    with pytest.raises(TypeError, match=f"this is not a pass: Altered: .*{message}"):
        PassManager([object.__new__(altered(**members))])


def given_more(function):
    """A decorator that hands on one more argument than it takes."""

    @functools.wraps(function)
    def called(self, graph, ctx):
        return function(self, graph, ctx, 3)

    return called


@pytest.mark.parametrize(
    "members",
    [
        {"run": given_more(lambda self, graph, ctx, more: False)},
        {"run": lambda *arguments, **others: False},
        {"run": lambda self, graph, ctx, more=3: False},
        {"run": staticmethod(lambda graph, ctx: False)},
        {"run": classmethod(lambda cls, graph, ctx: False)},
        {"run": functools.partialmethod(lambda self, more, graph, ctx: False, 3)},
        {"__annotations__": {"n": InitVar[int]}, "n": 1, "__post_init__": lambda self, n: None},
        {"__annotations__": {"n": int}, "n": 1, "__init__": lambda self, **options: None},
    ],
)
@pytest.mark.usefixtures("own_registries")
def test_methods_that_can_be_called_as_they_are(members):
    made = register(altered(**members))()
    assert not PassManager([made]).run(parse_graph("graph(%x : Tensor):\n  return (%x)")).changed


class FakePoint:
    group = "irc.passes"

    def __init__(self, name: str, loaded: object) -> None:
        self.name, self.value, self.loaded = name, f"plugin:{name}", loaded

    def load(self) -> object:
        if isinstance(self.loaded, Exception):
            raise self.loaded
        return self.loaded


@dataclass(frozen=True)
class Plugin:
    name: ClassVar[str] = "test-plugin"
    n: int = 1

    def run(self, graph, ctx) -> bool:
        return False


def test_entry_points(monkeypatch, own_registries):
    points = [
        FakePoint("test-plugin", Plugin),
        FakePoint("test-broken", ImportError("no module named 'x'")),
        FakePoint("test-misnamed", Plugin),
        FakePoint("test-function", lambda: None),
    ]
    monkeypatch.setattr("importlib.metadata.entry_points", lambda group: points if group == "irc.passes" else [])
    assert "test-plugin" in names()
    assert parse_pipeline("test-plugin{n=3}") == (Plugin(3),)
    with pytest.raises(
        Error, match=r"IRC304: plugin:test-broken: .* cannot be loaded: ImportError: no module named 'x'"
    ):
        parse_pipeline("test-broken")
    with pytest.raises(Error, match=r"IRC304: plugin:test-misnamed: .*name is 'test-misnamed': .*is 'test-plugin'"):
        parse_pipeline("test-misnamed")
    with pytest.raises(Error, match=r"IRC304: plugin:test-function: .*is not a class"):
        parse_pipeline("test-function")


def test_pipelines_with_names_combine_with_passes():
    default = parse_pipeline("default")
    assert parse_pipeline("default,in-place") == (*default, *parse_pipeline("in-place"))
    assert parse_pipeline("none,cse") == parse_pipeline("cse")


def test_errors_show_the_neighbourhood_of_the_place_only():
    with pytest.raises(Error, match="'csee'") as caught:
        parse_pipeline(",".join(["cse"] * 1000) + ",csee" + ",dce" * 1000)
    assert len(str(caught.value)) < 1000
    line, caret = str(caught.value).split("\n")[-2:]
    assert line[caret.index("^") : len(caret)] == "csee"


def test_a_pass_whose_definition_is_run_again_takes_the_place_of_the_first(own_registries):
    registry._PASSES.pop("test-made", None)
    register(made())
    again = register(made())
    assert type(create("test-made")) is again
