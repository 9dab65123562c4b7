"""Time `infer` relative to other methods in the same run, and print one Markdown table.

    python benchmarks/bench_infer.py              # everything
    python benchmarks/bench_infer.py --quick      # small sizes, to test the script
    python benchmarks/bench_infer.py --only joint em > table.md

Each section simulates data, and times `infer` and another method on the same arrays. Short
measurements are repeated, and the fastest is used. Compilation is timed separately. A section
yields lines of the table: case, infer, compared with, ratio, target, remarks.
"""

import argparse
import os
import platform
import resource
import tempfile
import time
import warnings
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from itertools import product
from multiprocessing import get_context
from pathlib import Path
from typing import NamedTuple

import numpy as np
from sklearn.ensemble import RandomForestClassifier

from looselabels import infer
from looselabels.exceptions import IdentifiabilityWarning
from looselabels.inference import condition_on_label, objective
from simulate import confusion, image_like, joint_problem, partial_transition, simulate

STRENGTH = 100  # pseudocounts per class
JOINT_CASES = (("forest", 0.1), ("smooth", 0.03))  # kind of label_proba, label rate
# The slowness of plain EM depends on how rare labels are and on how much T can change. The first
# case (one pseudocount per class) is the one of the target; the others show the range.
EM_CASES = (
    ("forest", 0.01, 1, "≥ 100 ×"),
    ("forest", 0.1, 1, ""),
    ("forest", 0.01, STRENGTH, ""),
    ("forest", 0.1, STRENGTH, ""),
    ("smooth", 0.03, STRENGTH, "≥ 3 ×"),
)
EM_GAP = 1e-5  # mean gap at which plain EM may stop
# Confusion matrices of the known transitions: accuracy, and concentration of the errors.
KNOWN_KINDS = ((0.7, 1.0), (0.8, 0.5))
KNOWN_TOL = 1e-6  # largest gap of a row
SMALL_CASES = (("smooth", 0.03, 10), ("smooth", 0.1, 10), ("forest", 0.1, 10), ("forest", 0.1, 1))
SMALL_ENTRY = 1e-6  # in place of zeros of the transition
ADAM_SHORTFALL = 1e-6  # nats per row below the objective of `infer` at which Adam may stop
ADAM_RATES = (0.1, 0.3, 0.03)  # the fastest one is used
COLUMNS = ("", "case", "infer", "compared with", "ratio", "target", "remarks")


class Sizes(NamedTuple):
    joint_rows: int = 60_000
    subset_rows: int = 5_000
    known: tuple = ((50_000, 10, 1), (100_000, 100, 4), (20_000, 1_000, 15))
    linear_rows: tuple = (10**4, 10**5, 10**6, 10**7)
    growth_rows: int = 100_000
    em_seconds: float = 300
    adam_seconds: float = 100


SMALL_KNOWN = ((5_000, 10, 1), (2_000, 100, 4), (1_000, 150, 15))
QUICK = Sizes(3_000, 500, SMALL_KNOWN, (10**4, 10**5, 10**6), 5_000, em_seconds=4, adam_seconds=2)


# ------------------------------------------------------------------------------------- the sections


def joint(sizes: Sizes):
    """Time task 1, and the fit of a forest to as many rows."""
    X, y = image_like(sizes.joint_rows)
    forest = RandomForestClassifier(100, n_jobs=-1, random_state=0)
    fit, _ = best_time(lambda: forest.fit(X, y), max_calls=1)
    for kind, rate in JOINT_CASES:
        label_proba, transition = joint_problem(kind, rate, sizes.joint_rows)
        seconds, found = best_time(partial(infer_both, label_proba, transition))
        compared = f"forest fit, {shape(X)}: {timed(fit)}"
        zeros = 100 * (label_proba == 0).any(axis=1).mean()
        remarks = f"mean gap {found.gap.mean():.1e}, max {found.gap.max():.1e}; {found.n_iter} "
        remarks += f"passes, converged: {found.converged}; {zeros:.0f} % of rows have zeros"
        target = "≤ 8 %, aim 3 %; mean gap ≤ 1e-8"
        ratio = f"{100 * seconds / fit:.2g} %"
        yield named(kind, rate, label_proba), timed(seconds), compared, ratio, target, remarks


def em(sizes: Sizes):
    """Time task 1 and plain EM, on a subset."""
    for kind, rate, strength, target in EM_CASES:
        label_proba, transition = subset(kind, rate, sizes)
        seconds, found = best_time(partial(infer_both, label_proba, transition, strength))
        spent, steps, gap, reached = plain_em(label_proba, transition, strength, sizes.em_seconds)
        below = (found.objective[-1] - reached) / len(label_proba)
        ratio = at_least(gap > EM_GAP, spent / seconds)
        remarks = f"infer: mean gap {found.gap.mean():.1e}; EM: {gap:.1e} after {steps:,} steps, "
        remarks += f"objective {below:.1e} nats per row below"
        case = f"{named(kind, rate, label_proba)}, strength {strength}"
        yield case, timed(seconds), f"plain EM: {timed(spent)}", ratio, target, remarks


def plain_em(label_proba, transition, strength, limit):
    """Run EM that updates class_proba and T in each step; return seconds, steps, gap, objective."""
    pseudocounts = strength * transition
    class_proba = np.full((len(label_proba), len(transition)), 1 / len(transition))
    seen, ratio = label_proba > 0, np.zeros_like(label_proba)
    start, steps = time.perf_counter(), 0
    while True:
        np.divide(label_proba, class_proba @ transition, out=ratio, where=seen)
        gradient = ratio @ transition.T
        gap = gradient.max(axis=1).mean() - 1  # the mean of the gradient under class_proba is 1
        seconds = time.perf_counter() - start
        if gap <= EM_GAP or seconds > limit:
            reached = objective(label_proba, class_proba, transition, pseudocounts)
            return seconds, steps, gap, reached
        mass = transition * (class_proba.T @ ratio) + pseudocounts
        class_proba *= gradient
        transition = mass / mass.sum(axis=1, keepdims=True)
        steps += 1


def small(sizes: Sizes):
    """Time task 1 with small entries in place of the zeros of the transition, and with zeros."""
    for kind, rate, strength in SMALL_CASES:
        label_proba, zeros = subset(kind, rate, sizes)
        entries = np.maximum(zeros, SMALL_ENTRY)
        entries /= entries.sum(axis=1, keepdims=True)
        seconds, found = best_time(partial(infer_both, label_proba, entries, strength))
        peer, other = best_time(partial(infer_both, label_proba, zeros, strength))
        lowest = np.diff(found.objective).min() / len(label_proba)
        remarks = (
            f"{found.n_iter} passes, with zeros {other.n_iter}; converged: {found.converged}; "
        )
        remarks += f"smallest change of the objective {lowest:.0e} nats per row"
        case = f"{named(kind, rate, label_proba)}, strength {strength}, zeros are {SMALL_ENTRY:g}"
        compared, ratio = f"zeros: {timed(peer)}", f"{seconds / peer:.2g} ×"
        yield case, timed(seconds), compared, ratio, "≤ 40 passes", remarks


def known(sizes: Sizes):
    """Time tasks 3 and 4, and cleanlab's search for label issues on the same arrays."""
    for (n_rows, n_classes, most), kind in product(sizes.known, KNOWN_KINDS):
        accuracy, concentration = kind
        transition = confusion(n_classes, accuracy=accuracy, concentration=concentration)
        label_proba, label_index = simulate(n_rows, transition)
        seconds, found = best_time(partial(infer_given, label_proba, transition, label_index))
        products, start = best_time(partial(matrix_products, label_proba, transition))
        compared, ratio = "cleanlab is not installed (pip install cleanlab)", ""
        if find_spec("cleanlab"):
            from cleanlab.filter import find_label_issues

            peer, _ = best_time(partial(find_label_issues, label_index, label_proba))
            compared, ratio = f"find_label_issues: {timed(peer)}", f"{seconds / peer:.2g} ×"
        inside = 100 * (start >= -1e-14).all(axis=1).mean()
        remarks = f"max gap {found.gap.max():.1e}; ŜT⁻¹ alone solves {inside:.2g} % of rows; "
        remarks += f"matrix products alone {timed(products)}"
        target = f"≤ {most} ×, aim {most / 3:.2g} ×; max gap ≤ {KNOWN_TOL:g}"
        case = f"{shape(label_proba)}, T: {accuracy} + Dirichlet({concentration:g}), with W"
        yield case, timed(seconds), compared, ratio, target, remarks


def infer_given(label_proba, transition, label_index):
    found = infer(label_proba, transition, tol=KNOWN_TOL)
    condition_on_label(found.class_proba, transition, label_index)
    return found


def matrix_products(label_proba, transition):
    """Compute the products that every solver needs at least once; return the first, ŜT⁻¹."""
    start = label_proba @ np.linalg.inv(transition)
    _ = (start @ transition) @ transition.T
    return start


def linear(sizes: Sizes):
    """Show how time grows with rows and classes, and the peak memory for the most rows."""
    counts, classes, n_rows = sizes.linear_rows, np.array([5, 10, 20, 40, 80]), sizes.growth_rows
    seconds = [known_seconds(n, partial_transition(10)) for n in counts]
    case = f"{counts[0]:.0e} to {counts[-1]:.0e} rows × 10, partial T"
    remarks = f"ns per row at each power of ten: {nanoseconds(seconds, counts)}"
    ratio = f"slope {slope(counts, seconds):.3f}"
    yield case, timed(seconds[-1]), "n", ratio, "1.0 ± 0.1", remarks

    for name, make_transition in {"partial": partial_transition, "confusion": confusion}.items():
        seconds = [known_seconds(n_rows, make_transition(m)) for m in classes]
        case = f"{n_rows:,} rows × 5 to 80, {name} T"
        remarks = "ns / (m_s m_y n) at m = 5, 10, 20, 40, 80: "
        remarks += nanoseconds(seconds, n_rows * classes**2)
        ratio = f"slope {slope(classes**2, seconds):.2f}"
        yield case, timed(seconds[-1]), "m_s m_y n", ratio, "", remarks

    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as fresh:
        size, extra = fresh.submit(memory_of_infer, counts[-1]).result()
    case, compared = f"peak memory, {counts[-1]:,} × 10", f"Ŝ: {size / 2**20:,.0f} MiB"
    ratio = f"{1 + extra / size:.2f} × Ŝ"
    yield case, f"{extra / 2**20:,.0f} MiB", compared, ratio, "< 4 × Ŝ", "ratio: with Ŝ itself"


def known_seconds(n_rows, transition):
    label_proba, _ = simulate(n_rows, transition)
    return best_time(partial(infer, label_proba, transition))[0]


def nanoseconds(seconds, amounts):
    return ", ".join(f"{1e9 * s / n:.3g}" for s, n in zip(seconds, amounts, strict=True))


def slope(sizes, seconds):
    return np.polyfit(np.log(sizes), np.log(seconds), 1)[0]


def memory_of_infer(n_rows):
    """Return the bytes of label_proba and those that `infer` adds; run it in a fresh process."""
    ignore_expected_warnings()
    transition = partial_transition(10)
    infer(simulate(1_000, transition)[0], transition)  # loads compiled code first
    label_proba, _ = simulate(n_rows, transition)
    before = memory("VmRSS")
    infer(label_proba, transition)
    return label_proba.nbytes, memory("VmHWM") - before


def memory(which):
    """Return the current ("VmRSS") or the peak ("VmHWM") memory of this process in bytes."""
    status = Path("/proc/self/status")
    if status.exists():  # on Linux, ru_maxrss includes the peak of the parent process
        line = next(x for x in status.read_text().splitlines() if x.startswith(which))
        return 1024 * int(line.split()[1])
    unit = 1 if platform.system() == "Darwin" else 1024
    return unit * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def adam(sizes: Sizes):
    """Time task 1, and Adam on softmax parameters, on a subset."""
    if not find_spec("torch"):
        yield "skipped", "", "torch is not installed (pip install torch)", "", "", ""
        return
    for kind, label_rate in JOINT_CASES:
        label_proba, transition = subset(kind, label_rate, sizes)
        seconds, found = best_time(partial(infer_both, label_proba, transition))
        run_adam(
            label_proba, transition, 0.1, np.inf, limit=0
        )  # PyTorch loads some modules on first use
        limit, runs = sizes.adam_seconds, []
        for rate in ADAM_RATES:
            runs.append(
                (*run_adam(label_proba, transition, rate, found.objective[-1], limit), rate)
            )
            if runs[-1][0] <= ADAM_SHORTFALL:  # other rates are useful only if faster
                limit = runs[-1][1]
        below, spent, steps, rate = min(runs, key=lambda run: (max(run[0], ADAM_SHORTFALL), run[1]))
        ratio = at_least(below > ADAM_SHORTFALL, spent / seconds)
        remarks = f"Adam: objective {below:.1e} nats per row below after {steps:,} steps, learning "
        remarks += f"rate {rate}, the best of {len(ADAM_RATES)}"
        case = named(kind, label_rate, label_proba)
        yield case, timed(seconds), f"Adam, PyTorch: {timed(spent)}", ratio, "", remarks


def run_adam(label_proba, transition, rate, goal, limit):
    """Return shortfall per row, seconds and steps of Adam on the logits of class_proba and T."""
    import torch

    labels, given = torch.tensor(label_proba), torch.tensor(transition)
    possible, entropy = given > 0, torch.xlogy(labels, labels).sum()
    class_logits = torch.zeros(len(labels), len(given), dtype=labels.dtype, requires_grad=True)
    label_logits = torch.log(torch.where(possible, given, 1.0)).requires_grad_()
    optimizer = torch.optim.Adam([class_logits, label_logits], lr=rate)
    start, steps = time.perf_counter(), 0
    while True:
        log_transition = label_logits.masked_fill(~possible, -torch.inf).log_softmax(dim=1)
        explained = class_logits.softmax(dim=1) @ log_transition.exp()
        prior = STRENGTH * (given * log_transition.masked_fill(~possible, 0.0)).sum()
        value = torch.xlogy(labels, explained).sum() - entropy + prior
        shortfall, seconds = (goal - value.item()) / len(labels), time.perf_counter() - start
        if shortfall <= ADAM_SHORTFALL or (steps and seconds > limit):
            return shortfall, seconds, steps
        optimizer.zero_grad()
        (-value).backward()
        optimizer.step()
        steps += 1


# --------------------------------------------------------------------------- measuring and printing


def infer_both(label_proba, transition, strength=STRENGTH):
    return infer(label_proba, transition, pseudocounts=strength * transition)


def subset(kind, label_rate, sizes: Sizes):
    label_proba, transition = joint_problem(kind, label_rate, sizes.joint_rows)
    return label_proba[: sizes.subset_rows], transition


def is_quick(description):
    """Parse the command line of a script whose only option is --quick."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--quick", action="store_true", help="a small part, to test the script")
    return parser.parse_args().quick


def best_time(function, max_calls=7, max_seconds=5.0):
    """Call `function` repeatedly; return the shortest time in seconds and the last result."""
    seconds = []
    while len(seconds) < max_calls and sum(seconds) < max_seconds:
        start = time.perf_counter()
        result = function()
        seconds.append(time.perf_counter() - start)
    return min(seconds), result


def warm_up():
    """Call every kernel once, to compile it."""
    transition, corners = partial_transition(8), np.eye(8)
    smooth, _ = simulate(200, transition)
    infer_both(np.vstack([smooth, corners, (corners + corners[-1]) / 2]), transition)
    infer(simulate(200, confusion(10))[0], confusion(10))


def timed(seconds):
    return f"{seconds:.3g} s" if seconds >= 1 else f"{1000 * seconds:.3g} ms"


def at_least(gave_up, ratio):
    return f"{'≥ ' if gave_up else ''}{ratio:,.3g} ×"


def named(kind, label_rate, label_proba):
    return f"{kind}, label rate {label_rate}, {shape(label_proba)}"


def shape(array):
    return " × ".join(f"{n:,}" for n in array.shape)


def machine() -> str:
    """Describe the machine and the versions of the packages."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    packages = ("looselabels", "numpy", "numba", "scikit-learn", "torch", "cleanlab")
    return (
        f"{cores} cores ({models[0] if models else platform.processor()}), {platform.system()}, "
        f"Python {platform.python_version()}, " + ", ".join(map(installed, packages))
    )


def installed(package):
    try:
        return f"{package} {version(package)}"
    except PackageNotFoundError:
        return f"without {package}"


def table(sections, sizes: Sizes):
    """Yield the lines of the Markdown table, one by one."""
    yield f"| {' | '.join(COLUMNS)} |"
    yield "|---" * len(COLUMNS) + "|"
    for section in sections:
        for row in SECTIONS[section](sizes):
            yield f"| {section} | {' | '.join(row)} |"


def ignore_expected_warnings():
    warnings.simplefilter("ignore", IdentifiabilityWarning)
    warnings.filterwarnings("ignore", "May not flag all label issues")  # cleanlab, rare labels


SECTIONS = {section.__name__: section for section in (joint, em, small, known, linear, adam)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--only", nargs="+", choices=SECTIONS, default=list(SECTIONS))
    parser.add_argument("--quick", action="store_true", help="small sizes, less than a minute")
    options = parser.parse_args()
    ignore_expected_warnings()
    with tempfile.TemporaryDirectory() as empty:
        os.environ["NUMBA_CACHE_DIR"] = empty  # an empty cache, to measure compilation
        seconds, _ = best_time(warm_up, max_calls=1)
        print(f"{machine()}. Compilation, once: {timed(seconds)}.\n", flush=True)
        for line in table(options.only, QUICK if options.quick else Sizes()):
            print(line, flush=True)


if __name__ == "__main__":
    main()
