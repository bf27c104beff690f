"""What the harness says of a submission: why it cannot be loaded, how it is called, what each result is."""

from __future__ import annotations

import functools
import sys
from collections import namedtuple
from collections.abc import Callable, Sequence
from typing import Any

import numpy
import pytest
import torch

from grader.guest import harness
from grader.guest.harness import (
    LoadFailure,
    Submission,
    bind,
    load,
    parameters_of,
    perform,
    second_look,
    to_bytes,
)

_FILE = "/scratch/answer.py"
_X = torch.arange(24, dtype=torch.float32)


@pytest.fixture(autouse=True)
def _modules() -> Any:
    """A loaded submission stays in sys.modules for the life of its runner; here it goes again."""
    yield
    sys.modules.pop("submission", None)


def _fails(source: str | bytes, *entries: str) -> dict[str, Any]:
    data = source.encode() if isinstance(source, str) else source
    with pytest.raises(LoadFailure) as caught:
        load(data, _FILE, entries or ("f",))
    return caught.value.facts


def _call(function: Callable[..., Any], **more: Any) -> tuple[dict[str, Any], list[bytearray]]:
    """One call f(x) with x of shape (2, 3, 4)."""
    request = {
        "max_bytes": 1 << 20,
        "dtype": "float32",
        "buffers": [{"dtype": "float32", "numel": 24}],
        "args": {
            "x": {"k": "t", "b": 0, "s": [2, 3, 4], "st": [12, 4, 1], "o": 0, "g": bool(more.get("gradient"))}
        },
        "steps": [{"do": "call", "name": "f", "args": ["x"], "observe": True}],
        **more,
    }
    submission = Submission(_FILE, {"f": function})
    return perform(submission, request, [to_bytes(_X)])


def _result(function: Callable[..., Any], **more: Any) -> dict[str, Any]:
    reply, _ = _call(function, **more)
    assert reply["outcome"] == "returned", reply
    found: dict[str, Any] = reply["results"][0]
    return found


# Loading.


def test_missing_entry_names_what_there_is() -> None:
    """Functions and classes, but not what is private."""
    facts = _fails("def g(): pass\nclass K: pass\nn = 1\ndef _p(): pass\n")
    assert facts == {"code": "missing_entry", "entry": "f", "names": ["g", "K"]}


def test_every_entry_is_asked_for() -> None:
    """The second one counts, too."""
    assert _fails("def f(): pass\n", "f", "g")["entry"] == "g"


def test_not_callable() -> None:
    """Its type is named."""
    assert _fails("f = 3\n") == {"code": "not_callable", "entry": "f", "type": "int"}


def test_syntax_error_has_its_place() -> None:
    """Lines and columns from 1, as Python gives them."""
    facts = _fails("x = 1\ndef f(:\n    pass\n")
    assert (facts["code"], facts["line"], facts["column"]) == ("syntax", 2, 7)


@pytest.mark.parametrize(
    ("source", "line", "message"),
    [
        (b"x = 1\ny = '\0'\n", 2, "source code cannot contain null bytes"),
        ("x = 1\n\n# ä\n".encode("latin-1"), 3, "(unicode error) 'utf-8' codec can't decode byte 0xe4"),
        ("# ä\n".encode("latin-1"), 1, "(unicode error) 'utf-8' codec can't decode byte 0xe4"),
        (b"# coding: klingon\n", 1, "unknown encoding: klingon"),
        (b"# coding: rot13\n", 1, "'rot13' is not a text encoding"),
        (b"\xff\xfeimport", 1, "(unicode error) 'utf-8' codec can't decode byte 0xff"),
    ],
)
def test_unreadable_source(source: bytes, line: int, message: str) -> None:
    """Each with its line, the same in every version of Python."""
    facts = _fails(source)
    assert (facts["code"], facts["line"]) == ("syntax", line)
    assert facts["message"].startswith(message)


def test_too_deeply_nested() -> None:
    """Beyond the compiler's depth."""
    facts = _fails("f = " + "-" * 50_000 + "1")
    assert facts["code"] in ("unreadable", "syntax")
    assert "nested too deeply" in facts["message"] or "too complex" in facts["message"]


def test_exception_at_import_has_the_submissions_frames() -> None:
    """Its own alone, outermost first."""
    facts = _fails("import json\ndef g():\n    json.loads('{')\ng()\n")
    assert (facts["code"], facts["type"]) == ("raised", "JSONDecodeError")
    assert facts["bases"] == ["ValueError", "Exception", "BaseException", "object"]
    assert [(f["line"], f["name"]) for f in facts["frames"]] == [(4, "<module>"), (3, "g")]


@pytest.mark.parametrize("raising", ["raise SystemExit(3)", "raise KeyboardInterrupt", "exit()"])
def test_leaving_at_import_is_an_exception(raising: str) -> None:
    """It ends nothing but the import."""
    assert _fails(f"{raising}\n")["type"] in ("SystemExit", "KeyboardInterrupt", "NameError")


def test_many_frames_are_cut_in_the_middle() -> None:
    """A recursion shows how it began and where it ended."""
    facts = _fails("def g(n):\n    return 1 / n if n == 0 else g(n - 1)\ng(50)\n")
    assert len(facts["frames"]) == 10
    assert facts["frames"][0]["name"] == "<module>"


def test_loaded_module_is_importable_by_name_and_not_main() -> None:
    """Dataclasses and pickling need it in sys.modules; its main block does not run."""
    source = (
        "from __future__ import annotations\nfrom dataclasses import dataclass\n@dataclass\nclass K:\n    n: int\n"
        "def f(): return K(1)\nif __name__ == '__main__': raise RuntimeError\n"
    )
    assert load(source.encode(), _FILE, ["f"]).namespace["f"]() == sys.modules["submission"].K(1)


@pytest.mark.parametrize(
    "text", ["def f(): return 'ä'\n", "\ufeffdef f(): return 'ä'\n", "def f():\r\n\treturn 'ä'\r\n"]
)
def test_legal_sources_load(text: str) -> None:
    """UTF-8 with and without a mark, other line ends, tabs."""
    assert load(text.encode(), _FILE, ["f"]).namespace["f"]() == "ä"


def test_declared_encoding_is_honoured() -> None:
    """A cookie on the first lines."""
    source = "# -*- coding: latin-1 -*-\ndef f(): return 'ä'\n".encode("latin-1")
    assert load(source, _FILE, ["f"]).namespace["f"]() == "ä"


def test_lines_are_counted_as_python_counts_them() -> None:
    """A form feed or a line separator ends no line."""
    assert harness.source_lines("a\x0cb\r\nc\u2028d\re\n") == ["a\x0cb", "c\u2028d", "e", ""]


# Results.


@pytest.mark.parametrize(
    ("value", "facts"),
    [
        (None, {"k": "v", "type": "NoneType", "v": None}),
        (True, {"k": "v", "type": "bool", "v": True}),
        (7, {"k": "v", "type": "int", "v": "7"}),
        (-(2**4000), {"k": "v", "type": "int", "v": str(-(2**4000))}),
        (2**5000, {"k": "f", "type": "int of more than 4096 bits"}),
        (1.5, {"k": "v", "type": "float", "v": 1.5}),
        ("text", {"k": "v", "type": "str", "v": "text"}),
        ([1], {"k": "l", "type": "list", "tuple": False, "i": [{"k": "v", "type": "int", "v": "1"}]}),
        ((), {"k": "l", "type": "tuple", "tuple": True, "i": []}),
        ({"a": None}, {"k": "d", "i": {"a": {"k": "v", "type": "NoneType", "v": None}}}),
        (numpy.zeros(2), {"k": "f", "type": "numpy.ndarray"}),
        (numpy.float32(1), {"k": "f", "type": "numpy.float32"}),
        ({1, 2}, {"k": "f", "type": "builtins.set"}),
        (torch.float32, {"k": "f", "type": "torch.dtype"}),
        ([0] * 513, {"k": "f", "type": "builtins.list"}),
    ],
)
def test_plain_results(value: Any, facts: dict[str, Any]) -> None:
    """Numbers, containers and what is foreign."""
    assert _result(lambda x: value) == facts


def test_named_tuple_is_a_tuple() -> None:
    """Its own iterator is not asked."""
    pair = namedtuple("pair", "a b")

    class Liar(pair):
        def __iter__(self) -> Any:
            return iter([1, 2, 3])

    facts = _result(lambda x: Liar(None, None))
    assert (facts["type"], facts["tuple"], len(facts["i"])) == ("Liar", True, 2)


def test_endless_nesting_ends() -> None:
    """A list that holds itself, with and without gradients."""
    loop: list[Any] = []
    loop.append(loop)
    facts = _result(lambda x: loop, gradient={"of": ["x"], "cotangents": []})
    for _ in range(harness.MAX_DEPTH):
        facts = facts["i"][0]
    assert facts == {"k": "f", "type": "builtins.list"}


class _Mine(torch.Tensor):
    pass


class _Lying:
    @property  # type: ignore[misc]
    def __class__(self) -> type:
        return torch.Tensor


@pytest.mark.parametrize(
    ("make", "kind"),
    [(lambda x: x.as_subclass(_Mine), "_Mine"), (lambda x: _Lying(), "_Lying")],
)
def test_what_is_not_exactly_a_tensor_is_foreign(make: Callable[..., Any], kind: str) -> None:
    """By its type, whatever it says of its class."""
    facts = _result(make)
    assert facts["k"] == "f"
    assert facts["type"].endswith(kind)


@pytest.mark.parametrize(
    ("make", "facts"),
    [
        (lambda x: x.to_sparse(), {"layout": "sparse_coo"}),
        (lambda x: x.to("meta"), {"device": "meta"}),
        (lambda x: torch.complex(x, x), {"dtype": "complex64"}),
        (lambda x: torch.complex(x, x).conj(), {"dtype": "complex64"}),
        (lambda x: torch.quantize_per_tensor(x, 0.1, 0, torch.qint8), {"dtype": "qint8"}),
    ],
)
@pytest.mark.filterwarnings("ignore")
def test_tensors_that_are_not_read(make: Callable[..., Any], facts: dict[str, Any]) -> None:
    """What they are is said, their elements are not sent."""
    found = _result(make)
    assert found.items() >= facts.items()
    assert "data" not in found


@pytest.mark.filterwarnings("ignore")
def test_lazily_negated_tensor_is_flagged() -> None:
    """Its bytes are not its elements."""
    assert _result(lambda x: torch.complex(x, x).conj().imag)["neg"] is True


def test_view_is_named_by_buffer_offset_and_strides() -> None:
    """Found by address, however it was made."""
    for make in (lambda x: x[:, 1:, 2], lambda x: x.data[:, 1:, 2], lambda x: x.detach()[:, 1:, 2]):
        facts = _result(make)
        assert (facts["buffer"], facts["offset"], facts["stride"], facts["shape"]) == (0, 6, [12, 4], [2, 2])


def test_copy_lies_nowhere_and_storages_are_numbered() -> None:
    """Two views of one new storage share its number."""
    facts = _result(lambda x: (lambda c: (c[0], c[1], x.clone()))(x.clone()))["i"]
    assert [(f["buffer"], f["storage"]) for f in facts] == [(None, 0), (None, 0), (None, 1)]


def test_swapped_data_does_not_move_the_goal() -> None:
    """The addresses are those of the buffers that were handed out."""

    def swap(x: torch.Tensor) -> torch.Tensor:
        x.data = x.data.clone()
        return x

    reply, out = _call(swap)
    assert reply["results"][0]["buffer"] is None
    assert out[reply["inputs"][0]] == to_bytes(_X)


def test_attributes_of_an_instance_shadow_nothing() -> None:
    """Facts come from the library's own methods."""

    def lie(x: torch.Tensor) -> torch.Tensor:
        y = x.transpose(0, 1)
        y.stride = lambda *_: (8, 4, 1)  # type: ignore[method-assign,assignment]
        y.storage_offset = lambda: 5  # type: ignore[method-assign]
        y.untyped_storage = x.clone().untyped_storage  # type: ignore[method-assign]
        return y

    facts = _result(lie)
    assert (facts["stride"], facts["offset"], facts["buffer"]) == ([4, 12, 1], 0, 0)


def test_patched_class_shadows_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same for the methods and properties of torch.Tensor itself."""
    for name in (
        "stride",
        "storage_offset",
        "untyped_storage",
        "data_ptr",
        "size",
        "numel",
        "copy_",
        "view",
        "detach",
    ):
        monkeypatch.setattr(torch.Tensor, name, lambda *_: None)
    for name in ("dtype", "shape", "device", "layout", "requires_grad"):
        monkeypatch.setattr(torch.Tensor, name, property(lambda _: "patched"))
    trial = harness._Trial(Submission(_FILE, {}), {"max_bytes": 1000}, "cpu", [])
    facts = harness._describe(_X, trial, [], {}, [], 0)
    assert (facts["dtype"], facts["shape"], facts["stride"], facts["device"]) == ("float32", [24], [1], "cpu")
    assert trial.out[facts["data"]] == _X.numpy().tobytes()


def test_absurd_view_is_not_read() -> None:
    """Its size is said; nothing of it is allocated."""
    facts = _result(lambda x: torch.zeros(1).expand(2**40, 2**20))
    assert (facts["shape"], facts["stride"], facts["too_large"]) == ([2**40, 2**20], [0, 0], True)
    assert "data" not in facts


@pytest.mark.parametrize("dtype", list(harness.DTYPES.values()), ids=str)
def test_elements_arrive_in_order(dtype: torch.dtype) -> None:
    """Row-major, whatever the strides."""
    value = torch.tensor([[0, 1], [1, 0]]).to(dtype).t()
    reply, out = _call(lambda x: value)
    data = torch.frombuffer(out[reply["results"][0]["data"]], dtype=dtype)
    assert data.tolist() == value.flatten().tolist()


def test_parameter_empty_scalar_and_inference_tensors() -> None:
    """All are plain tensors."""
    assert _result(lambda x: torch.nn.Parameter(x))["parameter"] is True
    assert _result(lambda x: x[:0])["shape"] == [0, 3, 4]
    assert _result(lambda x: x.sum())["shape"] == []
    with torch.inference_mode():
        made = torch.ones(2)
    assert _result(lambda x: made)["stride"] == [1]


def test_mutation_has_two_witnesses() -> None:
    """The bytes after the call, and the version counter for an edit that is undone."""
    reply, out = _call(lambda x: x.data.zero_())
    assert not any(out[reply["inputs"][0]])
    reply, out = _call(lambda x: x.add_(1).sub_(1))
    assert out[reply["inputs"][0]] == to_bytes(_X)
    [(before, after)] = reply["versions"]
    assert after == before + 2


def test_second_look_shows_late_edits() -> None:
    """Digests of every kept result as it is now."""
    submission = Submission(_FILE, {"f": lambda x: x + 1})
    request = {
        "max_bytes": 1 << 20, "dtype": "float32", "buffers": [{"dtype": "float32", "numel": 2}],
        "args": {"x": {"k": "t", "b": 0, "s": [2], "st": [1], "o": 0}},
        "steps": [{"do": "call", "name": "f", "args": ["x"], "observe": True}],
    }  # fmt: skip
    perform(submission, request, [to_bytes(torch.ones(2))])
    before = second_look(submission)
    submission.kept[0][0].zero_()
    assert [len(group) for group in before] == [1]
    assert second_look(submission) != before


def test_gradient_of_each_input() -> None:
    """With the cotangent that was sent; None where none arrives."""
    gradient = {"of": ["x"], "cotangents": [[1, [2, 3, 4]]]}
    buffers = [{"dtype": "float32", "numel": 24}] * 2
    submission = Submission(_FILE, {"f": lambda x: x * 3})
    request = {
        "max_bytes": 1 << 20, "dtype": "float32", "buffers": buffers, "gradient": gradient,
        "args": {"x": {"k": "t", "b": 0, "s": [2, 3, 4], "st": [12, 4, 1], "o": 0, "g": True}},
        "steps": [{"do": "call", "name": "f", "args": ["x"], "observe": True}],
    }  # fmt: skip
    reply, out = perform(submission, request, [to_bytes(_X), to_bytes(_X)])
    sent = reply["gradient"]["inputs"][0]
    assert torch.equal(torch.frombuffer(out[sent["data"]], dtype=torch.float32), 3 * _X)
    submission.namespace["f"] = lambda x: x.detach()
    reply, _ = perform(submission, request, [to_bytes(_X), to_bytes(_X)])
    assert reply["gradient"]["inputs"] == [None]


def test_exceptions_are_facts() -> None:
    """A message that cannot be read, one that lies, one of lone surrogates."""

    class Odd(Exception):
        def __str__(self) -> str:
            raise RuntimeError

    class Text(str):
        def __getitem__(self, key: Any) -> Any:
            return object()

    class Liar(Exception):
        def __str__(self) -> str:
            return Text("told")

    assert harness.describe_error(Odd(), _FILE)["message"] == "(its message cannot be read)"
    assert type(harness.describe_error(Liar(), _FILE)["message"]) is str
    assert harness.describe_error(ValueError("\ud800!"), _FILE)["message"] == "?!"
    assert len(harness.describe_error(ValueError("x" * 9999), _FILE)["message"]) == 4000


def test_messages_speak_of_the_file_by_its_name() -> None:
    """Where it was put in order to run means nothing to its author."""
    error = ImportError(f"cannot import name 'g' from 'submission' ({_FILE})")
    described = harness.describe_error(error, _FILE)["message"]
    assert described == "cannot import name 'g' from 'submission' (answer.py)"
    assert harness.describe_error(ValueError("answer.py"), "answer.py")["message"] == "answer.py"


@pytest.mark.parametrize(
    "error", [SystemExit(0), KeyboardInterrupt(), GeneratorExit(), RecursionError("deep")]
)
def test_whatever_is_raised_ends_the_call_only(error: BaseException) -> None:
    """Also what is no Exception."""

    def f(x: torch.Tensor) -> None:
        raise error

    reply, _ = _call(f)
    assert (reply["outcome"], reply["error"]["type"]) == ("raised", type(error).__name__)


# Binding.


def _plain(x: Any, n: Any) -> Any:
    return x, n


def _keyword_only(x: Any, *, n: Any) -> Any:
    return x, n


def _anything(*args: Any, **kwargs: Any) -> Any:
    return (*args, *kwargs.values())


def _by_name(**kwargs: Any) -> Any:
    return kwargs["x"], kwargs["n"]


def _other_names(hidden: Any, heads: Any, more: int = 0) -> Any:
    return hidden, heads


def _one_and_rest(x: Any, **rest: Any) -> Any:
    return x, rest["n"]


class _Callable:
    def __call__(self, x: Any, *, n: Any) -> Any:
        return x, n

    @classmethod
    def of_class(cls, x: Any, n: Any) -> Any:
        return x, n


class _Module(torch.nn.Module):
    def forward(self, x: Any, *, n: Any) -> Any:
        return x, n


@pytest.mark.parametrize(
    "function",
    [
        _plain, _keyword_only, _anything, _by_name, _other_names, _one_and_rest, _Callable(), _Callable.of_class,
        _Module(), lambda x, n: (x, n), functools.partial(lambda flag, x, n: (x, n), True),
        functools.partial(_plain), functools.wraps(_plain)(_anything), lambda x, /, n: (x, n), max,
    ],
)  # fmt: skip
def test_every_way_to_take_two_arguments(function: Any) -> None:
    """By position, and by name where the function wants the name."""
    positional, keywords = bind(parameters_of(function, {}), ["x", "n"], [1, 2])
    result = function(*positional, **keywords)
    assert result in ((1, 2), 2)


@pytest.mark.parametrize(
    ("function", "parameters"),
    [
        (lambda x: x, "(x)"),
        (lambda x, n, mask: x, "(x, n, mask)"),
        (lambda x, *, heads=1: x, "(x, *, heads=1)"),
        (torch.nn.Identity(), "(input)"),
    ],
)
def test_call_that_does_not_fit_names_both_signatures(function: Any, parameters: str) -> None:
    """What the submission takes and what is asked."""
    reply = _two(function)
    assert reply["outcome"] == "raised"
    assert reply["error"]["message"] == f"`f{parameters}` cannot be called as `f(x, n)`"


def test_type_errors_from_within_stay_as_they_are() -> None:
    """A wrong call inside the submission is not taken for one of the submission."""
    reply = _two(lambda x, n: len(n))
    assert reply["error"]["message"] == "object of type 'int' has no len()"


def test_wrapper_whose_signature_lies_is_called_as_asked() -> None:
    """What functools.wraps shows is not always what the wrapper takes."""

    def wide(x: Any, n: Any, extra: Any) -> Any:
        return n

    wrapped = functools.wraps(wide)(lambda x, n: wide(x, n, 1))
    assert _two(wrapped)["results"][0]["v"] == "2"


def _two(function: Any) -> dict[str, Any]:
    request = {
        "max_bytes": 1000, "dtype": "float32", "buffers": [],
        "args": {"x": {"k": "v", "v": 1}, "n": {"k": "v", "v": 2}},
        "steps": [{"do": "call", "name": "f", "args": ["x", "n"], "observe": True}],
    }  # fmt: skip
    reply, _ = perform(Submission(_FILE, {"f": function}), request, [])
    return reply


def _steps(namespace: dict[str, Any], steps: Sequence[dict[str, Any]], **more: Any) -> dict[str, Any]:
    request = {
        "max_bytes": 1000, "dtype": "float64", "buffers": [{"dtype": "float64", "numel": 4}],
        "args": {"w": {"k": "t", "b": 0, "s": [2, 2], "st": [2, 1], "o": 0}, "n": {"k": "v", "v": 2}},
        "steps": steps, **more,
    }  # fmt: skip
    reply, _ = perform(Submission(_FILE, namespace), request, [to_bytes(torch.ones(4, dtype=torch.float64))])
    return reply


class _Layer(torch.nn.Module):
    def __init__(self, w: torch.Tensor, n: int) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.zeros(n, n))
        with torch.no_grad():
            self.weight.copy_(w)

    def forward(self, w: torch.Tensor) -> torch.Tensor:
        return self.weight @ w if self.training else self.weight

    def kept(self) -> torch.Tensor:
        return self.weight


def test_module_is_made_moved_switched_and_called() -> None:
    """Every step of a class problem, in order."""
    reply = _steps(
        {"K": _Layer},
        [
            {"do": "new", "name": "K", "args": ["w", "n"], "names": ["w", "n"]},
            {"do": "to"},
            {"do": "eval"},
            {"do": "method", "name": "forward", "args": ["w"], "observe": True},
            {"do": "train"},
            {"do": "method", "name": "__call__", "args": ["w"], "observe": True},
            {"do": "scrub", "args": ["w"]},
            {"do": "method", "name": "kept", "args": [], "observe": True},
            {"do": "parameters", "observe": True},
        ],
    )
    assert reply["outcome"] == "returned", reply
    assert [r.get("dtype") for r in reply["results"][:3]] == ["float64"] * 3
    assert [r["parameter"] for r in reply["results"][:3]] == [True, False, True]
    assert reply["results"][3]["v"] == "4"
