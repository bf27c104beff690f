"""Which known mistake explains a submission?

A wrong version explains it when both behave alike: equal results on every ordinary trial, and the same
findings in every family of checks that the mistake touches. Values are compared with the mistake's own
results, so the name says what was computed, not merely that something is off.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from grader.fold import Fold, fold, views
from grader.inputs import Phase, Trial
from grader.numerics import exact_gap, logic_gap
from grader.observe import Facts, ItemsFacts, MembersFacts, Observation, ScalarFacts, TensorFacts
from grader.report import Finding, Outcome, Status
from grader.spec.model import Problem
from grader.versions import Version, Versions

_T = TypeVar("_T")
_VALUE = "value"
_FAMILY = {
    "returns": _VALUE,
    "shape": _VALUE,
    "finite": _VALUE,
    "values": _VALUE,
    "causality": _VALUE,
    "no_copy": "memory",
    "strides": "memory",
    "single_storage": "memory",
    "contiguous": "memory",
    "allocation": "memory",
    "forbidden": "operations",
    "required": "operations",
    "gradient": "gradient",
    "mutation": "mutation",
    "determinism": "determinism",
    "raises": "raises",
    "dtype": "dtype",
    "device": "device",
}

# A finding as it is compared between versions.
Key = tuple[str, str, str, str]


@dataclass(frozen=True)
class Behaviour:
    """What a version does: its findings by family, where they fall, and its observations trial by trial."""

    families: dict[str, frozenset[Key]]
    spots: dict[str, frozenset[tuple[str, str, str]]]
    observations: tuple[Observation | None, ...]


def behaviour(
    trials: Sequence[Trial], actuals: Sequence[Observation | None], folds: Sequence[Fold]
) -> Behaviour:
    """The behaviour of a version, for comparison."""
    families: dict[str, set[Key]] = {}
    spots: dict[str, set[tuple[str, str, str]]] = {}
    for entry in folds:
        if entry.status is Status.FAILED:
            keys = {_key(finding, trials) for finding in entry.findings}
            family = _family_of(entry, keys)
            families.setdefault(family, set()).update(keys)
            spots.setdefault(family, set()).update(_spot(finding, trials) for finding in entry.findings)
    return Behaviour(_frozen(families), _frozen(spots), tuple(actuals))


def _frozen(sets: dict[str, set[_T]]) -> dict[str, frozenset[_T]]:
    return {name: frozenset(items) for name, items in sets.items()}


def _spot(finding: Finding, trials: Sequence[Trial]) -> tuple[str, str, str]:
    case = trials[finding.trial].case if finding.trial is not None else ""
    return finding.check, finding.code, case


def _family_of(entry: Fold, keys: set[Key]) -> str:
    """Numbers that are wrong only in low precision are a family of their own."""
    family = _FAMILY.get(entry.check, entry.check)
    low = all(key[3] in ("float32", "bfloat16", "float16") for key in keys)
    return "precision" if family == _VALUE and low else family


def _key(finding: Finding, trials: Sequence[Trial]) -> Key:
    trial = trials[finding.trial] if finding.trial is not None else None
    group = "" if trial is None else trial.dtype if trial.phase is Phase.HYGIENE else str(trial.phase)
    if _FAMILY.get(finding.check) == "operations":
        # The same refused call shows on other trials when it is made of primitives.
        group = ""
    return finding.check, finding.code, str(finding.data.get("of", "")), group


def explain(
    problem: Problem,
    versions: Versions,
    trials: Sequence[Trial],
    actuals: Sequence[Observation | None],
    folds: Sequence[Fold],
) -> list[str]:
    """The ids of the known mistakes that explain a failed submission, in the problem file's order."""
    telling = _telling(trials, folds)
    mine = _behaviour_on(telling, problem, versions, trials, actuals)
    likely = _likely(problem, versions, trials, actuals, telling, mine)
    known = [(version, _known(telling, problem, versions, trials, version.name)) for version in likely]
    matches = [(v, b) for v, b in known if _explains(trials, b, mine, frozenset(b.families))]
    if _VALUE in mine.families and not any(_VALUE in b.families for _, b in matches):
        # Same numbers, other memory: the numbers are still worth a name.
        by_value = [(v, b) for v, b in known if _VALUE in b.families]
        matches += [(v, b) for v, b in by_value if _explains(trials, b, mine, frozenset([_VALUE]))]
    matches = [(v, b) for v, b in matches if not any(set(b.families) < set(o.families) for _, o in matches)]
    found = {v.mistake for v, b in matches if not _outdone(b, mine, [o for _, o in matches])}
    return [mistake.id for mistake in problem.mistakes if mistake.id in found]


def _telling(trials: Sequence[Trial], folds: Sequence[Fold]) -> frozenset[int]:
    """The trials to compare on: those of other precisions only if some failure shows nowhere else."""
    main = frozenset(i for i, trial in enumerate(trials) if _is_main(trial))
    failed = [entry for entry in folds if entry.status is Status.FAILED]
    enough = all(any(f.trial in main for f in entry.findings) for entry in failed)
    return main if enough else frozenset(range(len(trials)))


def _is_main(trial: Trial) -> bool:
    if trial.phase is Phase.EXACT:
        return trial.dtype == "float32" or trial.twin is not None
    return trial.phase is not Phase.HYGIENE or trial.traced


def _behaviour_on(
    telling: frozenset[int],
    problem: Problem,
    versions: Versions,
    trials: Sequence[Trial],
    actuals: Sequence[Observation | None],
) -> Behaviour:
    """A version's behaviour as far as the telling trials show it."""
    shown = [actual if i in telling else None for i, actual in enumerate(actuals)]
    seen = views(problem, trials, shown, versions)
    return behaviour(trials, shown, fold(problem, seen, len(seen)))


def _known(
    telling: frozenset[int], problem: Problem, versions: Versions, trials: Sequence[Trial], name: str
) -> Behaviour:
    key = ("behaviour", name, telling)
    if key not in versions.memo:
        actuals = [versions.observe(name, trial) if i in telling else None for i, trial in enumerate(trials)]
        versions.memo[key] = _behaviour_on(telling, problem, versions, trials, actuals)
    found: Behaviour = versions.memo[key]
    return found


def _likely(
    problem: Problem,
    versions: Versions,
    trials: Sequence[Trial],
    actuals: Sequence[Observation | None],
    telling: frozenset[int],
    mine: Behaviour,
) -> list[Version]:
    """The versions that ordinary calls do not rule out; the rest need no traced and no gradient runs."""
    probes = _probes(versions, trials, telling, mine)
    ordinary = frozenset(
        i for i in telling if not (trials[i].traced or trials[i].gradient_of or trials[i].raises)
    )
    so_far = _behaviour_on(ordinary, problem, versions, trials, actuals)
    likely = []
    for version in versions.wrong:
        if all(_may_explain(versions, version.name, trials[i], mine.observations[i]) for i in probes):
            known = _known(ordinary, problem, versions, trials, version.name)
            fits = all(so_far.families.get(family) == keys for family, keys in known.families.items())
            likely += [version] if fits or _VALUE in known.families else []
    return likely


def _probes(
    versions: Versions, trials: Sequence[Trial], telling: frozenset[int], mine: Behaviour
) -> list[int]:
    """Two trials for a quick look: where the submission's numbers are wrong, if they are anywhere."""
    comparable = [i for i in sorted(telling) if _compares(trials[i]) and mine.observations[i] is not None]
    if _VALUE not in mine.families:
        return comparable[:2]
    off = [
        i for i in comparable if not _agree(versions.observe("reference", trials[i]), mine.observations[i])
    ]
    return (off or comparable)[:2]


def _may_explain(versions: Versions, name: str, trial: Trial, mine: Observation | None) -> bool:
    """Whether a version gives what the submission gives, or else what is right."""
    observed = versions.observe(name, trial)
    return _agree(observed, mine) or _agree(observed, versions.observe("reference", trial))


def _outdone(known: Behaviour, mine: Behaviour, others: Sequence[Behaviour]) -> bool:
    """Whether another match of the same kind fails on more nearly the submission's cases.

    A spelling that is not listed gets the name of the nearest mistake, and not those of its siblings too.
    """
    siblings = [other for other in others if set(other.families) == set(known.families)]
    return any(_distance(other, mine) < _distance(known, mine) for other in siblings)


def _distance(known: Behaviour, mine: Behaviour) -> int:
    """On how many spots two versions differ, in the families that the known one touches."""
    families = [family for family in known.spots if family != "precision"]
    return sum(len(known.spots[family] ^ mine.spots.get(family, frozenset())) for family in families)


def _explains(trials: Sequence[Trial], known: Behaviour, mine: Behaviour, families: frozenset[str]) -> bool:
    if not families or not known.families:
        return False
    for family in families - {_VALUE}:
        if mine.families.get(family) != known.families[family]:
            return False
    if _VALUE in families:
        return _VALUE in mine.families and _same_results(trials, known, mine)
    if "gradient" in families:
        return _same_gradients(trials, known, mine)
    return True


def _same_results(trials: Sequence[Trial], known: Behaviour, mine: Behaviour) -> bool:
    pairs = zip(trials, known.observations, mine.observations, strict=True)
    chosen = [(k, m) for trial, k, m in pairs if _compares(trial)]
    return bool(chosen) and all(_agree(k, m) for k, m in chosen)


def _compares(trial: Trial) -> bool:
    special = trial.traced or trial.gradient_of or trial.raises or trial.parameters
    return trial.phase in (Phase.EXACT, Phase.LOGIC) and not special


def _agree(known: Observation | None, mine: Observation | None) -> bool:
    if known is None or mine is None:
        return known is mine
    if known.outcome is not Outcome.RETURNED or mine.outcome is not Outcome.RETURNED:
        raised = known.raised and mine.raised
        return known.outcome is mine.outcome and bool(raised) and known.raised.type == mine.raised.type  # type: ignore[union-attr]
    if len(known.results) != len(mine.results):
        return False
    return all(_equal(k, m) for k, m in zip(known.results, mine.results, strict=True))


def _equal(known: Facts, mine: Facts) -> bool:
    if isinstance(known, TensorFacts) and isinstance(mine, TensorFacts):
        return _equal_tensors(known, mine)
    if isinstance(known, ItemsFacts) and isinstance(mine, ItemsFacts):
        return len(known.items) == len(mine.items) and all(
            _equal(k, m) for k, m in zip(known.items, mine.items, strict=True)
        )
    if isinstance(known, MembersFacts) and isinstance(mine, MembersFacts):
        return known.members.keys() == mine.members.keys() and all(
            _equal(value, mine.members[key]) for key, value in known.members.items()
        )
    if isinstance(known, ScalarFacts) and isinstance(mine, ScalarFacts):
        return known.value == mine.value
    return type(known) is type(mine)


def _equal_tensors(known: TensorFacts, mine: TensorFacts) -> bool:
    if known.shape != mine.shape or known.data is None or mine.data is None:
        return known.shape == mine.shape and known.data is mine.data
    if not known.data.is_floating_point() or not mine.data.is_floating_point():
        return exact_gap(mine.data, known.data) is None
    return logic_gap(mine.data, known.data) is None


def _same_gradients(trials: Sequence[Trial], known: Behaviour, mine: Behaviour) -> bool:
    for trial, k, m in zip(trials, known.observations, mine.observations, strict=True):
        if trial.phase is not Phase.LOGIC or not trial.gradient_of or k is None or m is None:
            continue
        if (k.gradient is None) != (m.gradient is None):
            return False
        if k.gradient is None or m.gradient is None:
            continue
        for one, two in zip(k.gradient.inputs, m.gradient.inputs, strict=False):
            if (one is None) != (two is None):
                return False
            if one is not None and two is not None and logic_gap(two, one) is not None:
                return False
    return True
