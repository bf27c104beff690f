"""The traced run: which kind each operation is, where it stands in the source, whose data it copied, what it held."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Iterator

import pytest
import torch

from grader.guest import harness, trace
from grader.guest.trace import Recorder, traced
from grader.guest.wire import Frame
from grader.observe import decode

_FILE = "/scratch/answer.py"


@pytest.fixture(autouse=True)
def _modules() -> Iterator[None]:
    yield
    sys.modules.pop("submission", None)


def _record(source: str, **inputs: torch.Tensor) -> Recorder:
    """A traced call f(**inputs); whatever it raises comes out."""
    loaded = harness.load(textwrap.dedent(source).encode(), _FILE, ["f"])
    recorder = Recorder(_FILE, {name: [tensor] for name, tensor in inputs.items()})
    with traced(recorder):
        loaded.namespace["f"](**inputs)
    return recorder


def _x() -> torch.Tensor:
    return torch.arange(24, dtype=torch.float32).view(2, 3, 4)


def _expression(text: str) -> Recorder:
    return _record(f"import torch\n\ndef f(x):\n    return {text}\n", x=_x())


def _copies(recorder: Recorder) -> list[tuple[str, str, int]]:
    """Kind, public name and elements of every event that is more than a view or arithmetic."""
    dull = ("view", "compute", "matmul")
    return [(e["kind"], e["call"], e["written"]) for e in recorder.events if e["kind"] not in dull]


@pytest.mark.parametrize(
    ("text", "copies"),
    [
        ("x.contiguous()", []),
        ("x.transpose(1, 2).contiguous()", [("explicit_copy", "contiguous", 24)]),
        ("x.clone()", [("explicit_copy", "clone", 24)]),
        ("x.transpose(0, 1).reshape(6, 4)", [("reshape_copy", "reshape", 24)]),
        ("x.reshape(6, 4)", []),
        ("x.permute(2, 0, 1).flatten()", [("reshape_copy", "flatten", 24)]),
        ("x.repeat(1, 2, 1)", [("explicit_copy", "repeat", 48)]),
        ("torch.tile(x, (2, 1, 1))", [("explicit_copy", "tile", 48)]),
        ("x.repeat_interleave(2, 1)", [("explicit_copy", "repeat_interleave", 48)]),
        ("torch.cat([x, x], 1)", [("explicit_copy", "cat", 48)]),
        ("torch.stack([x, x])", [("explicit_copy", "stack", 48)]),
        ("x[torch.tensor([0, 1, 1])]", [("explicit_copy", "__getitem__", 36)]),
        ("x[[0, 1]]", [("explicit_copy", "__getitem__", 24)]),
        ("x[0, 1:]", []),
        ("x.index_select(1, torch.tensor([0, 0]))", [("explicit_copy", "index_select", 16)]),
        ("x.gather(1, torch.zeros(2, 1, 4, dtype=torch.long))", [("explicit_copy", "gather", 8)]),
        ("x.masked_select(x > 2)", [("explicit_copy", "masked_select", 21)]),
        ("x.flip(0)", [("explicit_copy", "flip", 24)]),
        ("torch.nn.functional.pad(x, (0, 1))", [("explicit_copy", "pad", 30)]),
        ("x.to(torch.float64)", [("cast", "to", 24)]),
        ("x.double()", [("cast", "double", 24)]),
        ("x.type(torch.float64)", [("cast", "type", 24)]),
        ("x.float()", []),
        ("x.to(x.dtype)", []),
        ("torch.nn.functional.softmax(x, -1, dtype=torch.float64)", [("cast", "softmax", 24)]),
        ("torch.empty(2, 3, 4).copy_(x)", [("explicit_copy", "copy_", 24)]),
        ("x.expand(5, 2, 3, 4)", []),
        ("x.expand(5, 2, 3, 4).reshape(10, 3, 4)", [("reshape_copy", "reshape", 120)]),
        ("x[None] * torch.ones(5, 1, 1, 1)", [("expansion", "mul", 120)]),
        ("torch.einsum('bsd,btd->bst', x, x)", []),
        ("x @ x.mT", []),
        ("torch.nn.functional.linear(x, torch.ones(3, 4))", []),
        ("torch.zeros_like(x) + torch.empty_like(x)", []),
        ("torch.func.vmap(lambda row: row.clone())(x)", [("explicit_copy", "clone", 24)]),
        ("torch.func.grad(lambda y: (y * y).sum())(x)", []),
    ],
)
def test_kinds_of_copies(text: str, copies: list[tuple[str, str, int]]) -> None:
    """What was copied, by which public call, and how many elements of it."""
    assert _copies(_expression(text)) == copies


@pytest.mark.parametrize(
    "product", ["q @ k.mT", "torch.matmul(q, k.mT)", "torch.einsum('bhsd,bhtd->bhst', q, k)"]
)
def test_products_copy_inside(product: str) -> None:
    """Operands that are no plain matrices are copied by the library: shown, never the learner's own."""
    recorder = _record(
        f"import torch\ndef f(x):\n    q = k = x.view(2, 3, 2, 2).transpose(1, 2)\n    return {product}\n",
        x=_x(),
    )
    assert {kind for kind, _, _ in _copies(recorder)} == {"internal_copy"}
    assert [e["kind"] for e in recorder.events].count("matmul") == 1


def test_assignment_into_a_new_tensor_is_a_copy() -> None:
    """Counted by what was written, not by what was allocated."""
    source = "import torch\ndef f(x):\n    out = torch.empty(2, 3, 4)\n    out[0] = x[1]\n    return out\n"
    recorder = _record(source, x=_x())
    assert _copies(recorder) == [("explicit_copy", "__setitem__", 12)]


def test_einops_copies_as_the_reshape_it_is() -> None:
    """A library's own calls stand at the learner's line."""
    recorder = _record(
        """
        from einops import rearrange
        def f(x):
            heads = rearrange(x, "b s (h d) -> b h s d", h=2)
            return rearrange(heads, "b h s d -> (b h) (s d)")
        """,
        x=_x(),
    )
    assert _copies(recorder) == [("reshape_copy", "reshape", 24)]
    assert {event["place"][0] for event in recorder.events} == {4, 5}


@pytest.mark.filterwarnings("ignore")
def test_compiled_code_is_traced() -> None:
    """With the backend that compiles nothing."""
    recorder = _expression("torch.compile(lambda y: y.clone() + 1, backend='eager')(x)")
    assert _copies(recorder) == [("explicit_copy", "clone", 24)]


def _spans(source: str) -> list[str]:
    """The source text of every copy's place, as the report will mark it."""
    text = textwrap.dedent(source)
    recorder = _record(source, x=_x())
    header = {
        "outcome": "returned", "inputs": [], "versions": [], "threads": 0, "operators": [], "events": recorder.events,
    }  # fmt: skip
    lines = harness.source_lines(text)
    places = [
        o.place for o in decode(Frame(header), lines).operations or () if "copy" in o.kind or o.kind == "cast"
    ]
    assert None not in places
    marked = []
    for place in places:
        assert place is not None
        chosen = lines[place.line - 1 : place.end_line]
        chosen[-1] = chosen[-1][: place.end_column - 1]
        chosen[0] = chosen[0][place.column - 1 :]
        marked.append("\n".join(chosen))
    return marked


@pytest.mark.parametrize(
    ("source", "marked"),
    [
        ("def f(x):\n    a = 1; y = x.clone(); return y\n", "x.clone()"),
        (
            "def f(größe, x):\n    return größe\ng = f\ndef f(x):\n    ü = 'äöü€'; y = x.clone()\n",
            "x.clone()",
        ),
        ("def f(x):\n    return (x\n            .mT\n            .contiguous())\n", "contiguous()"),
        (
            "def f(x):\n    return x.repeat(\n        1, 2,\n        1)\n",
            "x.repeat(\n        1, 2,\n        1)",
        ),
        ("f = lambda x: x.double() + 1\n", "x.double()"),
        ("def f(x):\n    return [row.clone() for row in x[:1]]\n", "row.clone()"),
        ("def _help(y):\n    return y.clone()\ndef f(x):\n    return _help(x)\n", "y.clone()"),
        ("def f(x, make=lambda y: y.clone()):\n    return make(x)\n", "y.clone()"),
        (
            "import functools\ndef deco(g):\n    @functools.wraps(g)\n"
            "    def inner(x):\n        return g(x)\n    return inner\n@deco\ndef f(x):\n    return x.clone()\n",
            "x.clone()",
        ),
        ("class K:\n    def __call__(self, x):\n        return x.clone()\nf = K()\n", "x.clone()"),
        ("def f(x):\n    return x[[0, 1]]\n", "x[[0, 1]]"),
        ("n = 1\n\x0c\ndef f(x):\n    return x.clone()\n", "x.clone()"),
        ("s = '\u2028'\ndef f(x):\n    return x.clone()\n", "x.clone()"),
    ],
)
def test_places(source: str, marked: str) -> None:
    """Line and column of the very expression."""
    assert _spans(source) == [marked]


def test_assignment_is_marked_as_a_whole() -> None:
    """An item assignment has no call to point at."""
    marked = _spans(
        "import torch\ndef f(x):\n    out = torch.empty(2, 3, 4)\n    out[:] = x\n    return out\n"
    )
    assert len(marked) == 1
    assert marked[0].startswith("out[:]")


def _of(source: str) -> list[list[str]]:
    ones = torch.ones(2, 3, 4)
    recorder = _record(source, q=ones.clone(), k=ones.clone(), v=ones.clone())
    return [event["of"] for event in recorder.events if event["kind"] in trace.EXPLICIT_KINDS]


@pytest.mark.parametrize(
    ("body", "labels"),
    [
        ("k.clone()", [["k"]]),
        ("k.transpose(1, 2)[..., 1:].contiguous()", [["k"]]),
        ("(k.double().clone(), v.clone())", [["k"], ["k"], ["v"]]),
        ("torch.cat([k, v])", [["k", "v"]]),
        ("(k + v).clone()", [["k", "v"]]),
        ("torch.zeros_like(k).clone()", [[]]),
        ("torch.empty_like(q).copy_(k).clone()", [["k"], ["k"]]),
        ("(q @ k.mT).clone()", [["q", "k"]]),
    ],
)
def test_copies_say_whose_data_they_hold(body: str, labels: list[list[str]]) -> None:
    """Through views, casts, arithmetic and assignment; not through a shape alone."""
    found = _of(f"import torch\ndef f(q, k, v):\n    return {body}\n")
    assert found == [sorted(names) for names in labels]


def test_peak_is_what_lives_at_once() -> None:
    """Storages that have been dropped count no longer; the inputs never."""
    big = torch.ones(1000)
    one_by_one = _record("def f(x):\n    for _ in range(5):\n        y = x.clone()\n        del y\n", x=big)
    together = _record("def f(x):\n    return [x.clone() for _ in range(5)]\n", x=big)
    assert (one_by_one.peak_bytes, together.peak_bytes) == (4000, 20000)
    assert [event["largest"] for event in together.events] == [4000] * 5
    assert _record("def f(x):\n    return x.view(10, 100)\n", x=big).peak_bytes == 0


def test_copies_alive_by_source() -> None:
    """Elements of the code's own copies that are alive just after each."""
    source = "def f(x):\n    y = x.clone()\n    z = y.clone()\n    del y\n    return z.clone()\n"
    recorder = _record(source, x=torch.ones(10))
    assert [event["alive"] for event in recorder.events] == [{"x": 10}, {"x": 20}, {"x": 20}]


def test_a_loop_without_end_in_sight_is_added_up() -> None:
    """Beyond the limit, like events are one; their sums are those of all."""
    count = trace.MAX_EVENTS + 500
    recorder = _record(f"def f(x):\n    for _ in range({count}):\n        x.clone()\n", x=torch.ones(3))
    assert len(recorder.events) == trace.MAX_EVENTS + 1
    assert sum(event["written"] for event in recorder.events) == 3 * count
    assert sum(event["new_bytes"] for event in recorder.events) == 12 * count


def test_public_names_and_first_places() -> None:
    """What was called, properties included, and where first."""
    recorder = _record("def f(x):\n    y = x.mT\n    return y.mT.clone()\n", x=_x())
    assert list(recorder.called) == ["mT", "clone"]
    assert recorder.called["mT"] == (2, 8, 2, 12)


def test_failing_only_while_traced_is_told_apart() -> None:
    """The traced trial raised; the same call untraced returned."""
    source = (
        "from torch.utils._python_dispatch import _get_current_dispatch_mode_stack as stack\n"
        "def f(x):\n    if stack():\n        raise RuntimeError('not while watched')\n    return x.clone()\n"
    )
    loaded = harness.load(source.encode(), _FILE, ["f"])
    request = {
        "max_bytes": 1000, "dtype": "float32", "buffers": [{"dtype": "float32", "numel": 2}], "profile": True,
        "args": {"x": {"k": "t", "b": 0, "s": [2], "st": [1], "o": 0}},
        "steps": [{"do": "call", "name": "f", "args": ["x"], "observe": True}],
    }  # fmt: skip
    raw = [harness.to_bytes(torch.ones(2))]
    plain, _ = harness.perform(loaded, request, raw)
    assert plain["outcome"] == "returned"
    assert "aten::clone" in plain["operators"]
    watched, _ = harness.perform(loaded, {**request, "trace": True, "profile": False}, raw)
    assert (watched["outcome"], watched["error"]["message"]) == ("raised", "not while watched")


def test_profiler_sees_composite_calls_and_what_switches_modes_off() -> None:
    """Names come from the dispatcher, with either interface of the library."""
    q = torch.ones(1, 1, 2, 4)
    names: set[str] = set()
    with trace.profiled(names), torch._C._DisableTorchDispatch():  # type: ignore[attr-defined]
        torch.nn.functional.scaled_dot_product_attention(q, q, q)
    assert "aten::scaled_dot_product_attention" in names


def test_profiler_without_the_older_interface(monkeypatch: pytest.MonkeyPatch) -> None:
    """The slower one gives the same names."""
    monkeypatch.setattr(trace, "_enable_profiler", None)
    names: set[str] = set()
    with trace.profiled(names):
        torch.ones(2, 3).clone()
    assert {"aten::ones", "aten::clone"} <= names
