"""Change the numerics at random places, and see which changes the tests notice.

    python tests/mutants.py run --jobs 16 --minutes 20      # appends to local/mutants.csv; resumes
    python tests/mutants.py table                           # shares per module, and the survivors
    python tests/mutants.py run --again                     # only what survived before
    python tests/mutants.py run --only 'estimation/*'       # mutants of these modules

A mutant is one small change of one source file: another operator, another constant, a negated
condition, a dropped statement. Each mutant runs against the tests of its own module, in a copy of
the tree. Seeds are fixed, so that everyone has the same mutants of the same sources.

A mutant that makes the tests endless is dead. Endless means processor time, far more than the tests
need without it, because on a busy machine tests of any mutant can take long. A mutant that is only
slow by the clock (it may wait for something, or the machine has no time) counts as not run.
"""

import argparse
import ast
import csv
import math
import os
import queue
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from fnmatch import fnmatch
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = Path("src/looselabels")
MODULES = [
    *("inference", "_climb", "_rows", "_interior", "_rows_numba", "_dual_numba", "_blocks"),
    *("transition", "estimation/*"),
]
# Besides tests/test_MODULE.py: parts without a test file of their own, and what uses all of them.
TESTS = {
    "_rows": ["test_rows", "test_blocks", "test_inference"],
    "_rows_numba": ["test_rows", "test_blocks", "test_inference"],
    "_dual_numba": ["test_rows", "test_blocks", "test_inference"],
    "_interior": ["test_interior", "test_rows"],
    "_climb": ["test_climb", "test_inference"],
    "_blocks": ["test_blocks", "test_inference"],
    "inference": ["test_inference", "test_paper", "test_sources"],
    "transition": ["test_transition", "test_paper"],
    "estimation/annotator_passes": [
        "estimation/test_annotator_passes",
        "estimation/test_annotators",
    ],
}
MEMORY = 32 * 2**20  # KiB of address space per mutant; one that wants more is stopped
PATIENCE = 10  # seconds by the clock per second of processor time
OUTCOMES = {0: "survived", "stopped": "stopped", -signal.SIGXCPU: "endless"}

# ------------------------------------------------------------------------------------- the mutants

SWAPPED = {
    **{"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "==", "is": "is not"},
    **{"is not": "is", "in": "not in", "not in": "in", "and": "or", "or": "and"},
    **{"+": "-", "-": "+", "*": "/", "/": "*", "//": "*", "**": "*", "&": "|", "|": "&"},
    **{"min": "max", "max": "min", "minimum": "maximum", "maximum": "minimum"},
    **{"any": "all", "all": "any", "zeros": "ones", "ones": "zeros", "argmax": "argmin"},
    **{"zeros_like": "ones_like", "ones_like": "zeros_like", "argmin": "argmax"},
    **{"floor": "ceil", "ceil": "floor", "break": "continue", "continue": "break"},
}
NEGATED = {"<": ">=", "<=": ">", ">": "<=", ">=": "<"}
OPERATOR = re.compile(rb"is\s+not\b|not\s+in\b|\b(?:and|or|is|in)\b|\*\*|//|[<>=!]=|[-+*/<>&|]")
NOT_CODE = (ast.Raise, ast.Assert, ast.JoinedStr, ast.Import, ast.ImportFrom, ast.AnnAssign)


class Mutant(NamedTuple):
    """One change of one file, from byte `begin` to byte `end`."""

    module: str
    line: int
    kind: str
    before: str
    after: str
    begin: int
    end: int

    @property
    def key(self):
        """What names the mutant in the table of results."""
        return (self.module, self.line, self.begin, self.kind, self.before, self.after)


def mutants_of(module):
    """Yield one mutant for each place in a module that can be changed."""
    source = (ROOT / PACKAGE / f"{module}.py").read_bytes()
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))

    def span(node):
        begin = starts[node.lineno - 1] + node.col_offset
        return begin, starts[node.end_lineno - 1] + node.end_col_offset

    for node in _code(ast.parse(source)):
        for kind, begin, end, after in _changes(node, span, source):
            line = source[:begin].count(b"\n") + 1
            before = source[begin:end].decode()
            yield Mutant(module, line, kind, before, after, begin, end)


def _code(node):
    """Yield the nodes below `node`, but not docstrings, annotations, decorators and messages."""
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "decorator_list"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if not isinstance(child, ast.AST) or isinstance(child, NOT_CODE) or _is_text(child):
                continue
            yield child
            yield from _code(child)


def _is_text(node):
    """Return whether a statement is a docstring, or a call that warns."""
    if not isinstance(node, ast.Expr):
        return False
    called = ast.unparse(node.value.func) if isinstance(node.value, ast.Call) else ""
    return isinstance(node.value, ast.Constant) or called == "warnings.warn"


def _changes(node, span, source):
    """Yield (kind, begin, end, new text) for each change of this node, not of those below it."""
    begin, end = span(node) if hasattr(node, "lineno") else (0, 0)
    match node:
        case ast.Compare():
            for left, right in zip([node.left, *node.comparators], node.comparators, strict=False):
                yield from _operator("comparison", span(left)[1], span(right)[0], source)
        case ast.BinOp():
            yield from _operator("arithmetic", span(node.left)[1], span(node.right)[0], source)
        case ast.BoolOp():
            first, second = node.values[:2]
            yield from _operator("logic", span(first)[1], span(second)[0], source)
        case ast.UnaryOp(op=ast.Not() | ast.USub() | ast.Invert()):
            operand = source[slice(*span(node.operand))].decode()
            yield "negation", begin, end, f"({operand})"
        case ast.Constant(value=bool()):
            yield "constant", begin, end, str(not node.value)
        case ast.Constant(value=int()):
            yield "constant", begin, end, str(node.value + 1)
        case ast.Constant(value=float()):
            yield "constant", begin, end, repr(2 * node.value or 1.0)
        case ast.If() | ast.While() | ast.IfExp():
            begin, end = span(node.test)
            yield "condition", begin, end, f"not ({source[begin:end].decode()})"
        case ast.AugAssign():
            yield from _operator("arithmetic", span(node.target)[1], span(node.value)[0], source)
            yield "dropped", begin, end, "pass"
        case ast.Assign(targets=[ast.Subscript() | ast.Attribute()]) | ast.Expr(value=ast.Call()):
            yield "dropped", begin, end, "pass"
        case ast.Break() | ast.Continue():
            yield "jump", begin, end, SWAPPED[source[begin:end].decode()]
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)) if name in SWAPPED:
            end = span(node.func)[1]
            yield "function", end - len(name), end, SWAPPED[name]


def _operator(kind, begin, end, source):
    """Yield the change of the operator between two operands."""
    found = OPERATOR.search(source, begin, end)
    name = " ".join(found[0].decode().split()) if found else None
    for table in (SWAPPED, NEGATED):
        if name in table:
            yield kind, *found.span(), table[name]


def sample(n_mutants, seed=0):
    """Return a random sample of the mutants of all modules, in random order."""
    files = [path for name in MODULES for path in sorted((ROOT / PACKAGE).glob(f"{name}.py"))]
    names = [path.relative_to(ROOT / PACKAGE).with_suffix("").as_posix() for path in files]
    every = [mutant for name in names for mutant in mutants_of(name)]
    return random.Random(seed).sample(every, min(n_mutants, len(every)))


def mutated(mutant):
    """Return the source of the module with the change."""
    source = (ROOT / PACKAGE / f"{mutant.module}.py").read_bytes()
    return source[: mutant.begin] + mutant.after.encode() + source[mutant.end :]


# ------------------------------------------------------------------------------------------ running


def files_of(module):
    """Return the module itself, because of its doctests, and its test files."""
    folder, _, name = module.rpartition("/")
    own = f"{folder}/test_{name}" if folder else f"test_{name}"
    return [f"{PACKAGE}/{module}.py", *(f"tests/{path}.py" for path in TESTS.get(module, [own]))]


def copy_tree(folder):
    """Copy what the tests need into `folder`, and return it."""
    skipped = shutil.ignore_patterns("__pycache__", "*.nbi", "*.nbc", "results")
    for name in ("src", "tests", "benchmarks", "experiments"):
        shutil.copytree(ROOT / name, folder / name, ignore=skipped)
    shutil.copy(ROOT / "pyproject.toml", folder)
    return folder


def run_pytest(tree, arguments, limit, cache):
    """Run tests in a copy of the tree; return the exit code, output and seconds of processor time.

    `limit` is in seconds of processor time. The exit code is "stopped" if they were not used in
    `PATIENCE` times as many seconds by the clock.
    """
    environment = {
        **os.environ,
        **{"PYTHONPATH": str(tree / "src"), "NUMBA_CACHE_DIR": str(cache)},
        **{"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1"},
    }
    pytest = [sys.executable, "-m", "pytest", "-q", "--tb=no", "-p", "no:cacheprovider"]
    script = f'ulimit -v {MEMORY}; ulimit -S -t {math.ceil(limit)}; exec "$@"'
    with tempfile.TemporaryFile("w+") as output:
        process = subprocess.Popen(
            ["sh", "-c", script, "sh", *pytest, *arguments],
            **{"cwd": tree, "env": environment, "start_new_session": True},
            **{"stdout": output, "stderr": output},
        )
        code, seconds = wait(process, PATIENCE * limit)
        output.seek(0)
        return code, output.read(), seconds


def wait(process, limit):
    """Wait for a process; return the exit code, or "stopped", and its processor time in seconds."""
    end = time.monotonic() + limit
    stopped = False
    while True:
        pid, status, used = os.wait4(process.pid, os.WNOHANG)
        if pid:
            break
        if time.monotonic() > end and not stopped:
            stopped = True
            os.killpg(process.pid, signal.SIGKILL)
        time.sleep(0.1)
    with suppress(ProcessLookupError):  # children of a test, too
        os.killpg(process.pid, signal.SIGKILL)
    process.returncode = os.waitstatus_to_exitcode(status)
    return "stopped" if stopped else process.returncode, used.ru_utime + used.ru_stime


def failed(output):
    """Return the tests that failed, from the summary of pytest."""
    return re.findall(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", output, flags=re.MULTILINE)


def run_unchanged(tree, path):
    """Return the result of a test file without any mutant: its time, and tests to leave out."""
    code, output, seconds = run_pytest(tree, [path], 900, tree / "numba")
    # Exit code 5: no tests. A module may have no doctests; a test file without tests was skipped.
    passed = (0, 1, 5) if path.startswith(f"{PACKAGE}") else (0, 1)
    outcome = "passed" if code in passed else "cannot run"
    left_out = failed(output) if code == 1 else []
    return Result(path, outcome=outcome, seconds=round(seconds, 1), test="\n".join(left_out))


def run_mutant(tree, mutant, unchanged):
    """Return the result of a mutant: killed (by a test), endless, survived, or stopped."""
    path = tree / PACKAGE / f"{mutant.module}.py"
    original = path.read_bytes()
    files = sorted(files_of(mutant.module), key=lambda name: unchanged[name].seconds)
    left_out = [test for name in files for test in unchanged[name].test.splitlines()]
    limit = 3 * sum(unchanged[name].seconds for name in files) + 60
    arguments = ["-x", *files, *(f"--deselect={test}" for test in left_out)]
    times = path.stat()
    with tempfile.TemporaryDirectory(dir=tree) as folder:
        cache = cache_for(mutant, tree / "numba", Path(folder))
        path.write_bytes(mutated(mutant))
        try:
            code, output, seconds = run_pytest(tree, arguments, limit, cache)
        finally:
            path.write_bytes(original)
            os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))  # for numba's cache
    outcome = OUTCOMES.get(code, "killed")
    test = (failed(output) or [f"exit code {code}"])[0] if outcome == "killed" else ""
    return Result(*mutant.key, outcome, round(seconds, 1), test)


def cache_for(mutant, shared, own):
    """Return the folder for what numba compiles: `shared` with other mutants, or `own`.

    Numba compiles anew if the file of a function has changed, but not if constants or functions
    from other files have: constants of `_rows`, and all of `_dual_numba`. So these begin empty.
    """
    source = (ROOT / PACKAGE / f"{mutant.module}.py").read_bytes()
    line = source.splitlines()[mutant.line - 1]
    if mutant.module == "_dual_numba" or (mutant.module == "_rows" and re.match(rb"[A-Z]", line)):
        return own
    if mutant.module == "_rows_numba" and shared.exists():
        return Path(shutil.copytree(shared, own, dirs_exist_ok=True))
    return shared


# ------------------------------------------------------------------------------------------ results


class Result(NamedTuple):
    """One line of the table: a mutant, or a test file without one (only `module` is set)."""

    module: str
    line: int = 0
    begin: int = 0
    kind: str = ""
    before: str = ""
    after: str = ""
    outcome: str = ""
    seconds: float = 0.0
    test: str = ""

    @property
    def key(self):
        """What names the mutant."""
        return tuple(self[:6])


def read_results(path):
    """Return the last result of each mutant and test file."""
    if not path.exists():
        return {}
    with path.open(newline="", encoding="utf-8") as file:
        rows = [
            Result(**row)._replace(
                line=int(row["line"]), begin=int(row["begin"]), seconds=float(row["seconds"])
            )
            for row in csv.DictReader(file)
        ]
    return {row.key: row for row in rows}


def append(path, result):
    """Add one line to the table."""
    new = not path.exists()
    with path.open("a", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        if new:
            writer.writerow(Result._fields)
        writer.writerow(result)


def run(mutants, path, jobs, minutes, again):
    """Run the mutants that have no result yet, in `jobs` processes, and stop in time."""
    end = time.monotonic() + 60 * minutes
    path.parent.mkdir(parents=True, exist_ok=True)
    results = read_results(path)
    open_ = [m for m in mutants if not known(m, results) or (again and alive(results[m.key]))]
    files = sorted({name for mutant in open_ for name in files_of(mutant.module)})
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(jobs) as pool:
        trees = queue.SimpleQueue()
        for i in range(jobs):
            trees.put(copy_tree(Path(folder) / str(i)))

        def in_a_tree(function, *arguments):
            if time.monotonic() > end:
                return
            tree = trees.get()
            try:
                result = function(tree, *arguments)
            finally:
                trees.put(tree)
            append(path, result)
            print(*result[:2], result.outcome, f"{result.seconds:.0f} s", result.test, flush=True)

        new = [n for n in files if again or not passes(results.get(Result(n).key, Result(n)))]
        list(pool.map(lambda name: in_a_tree(run_unchanged, name), new))
        unchanged = {row.module: row for row in read_results(path).values() if not row.kind}
        usable = {name for name in files if name in unchanged and passes(unchanged[name])}
        ready = [m for m in open_ if usable.issuperset(files_of(m.module))]
        list(pool.map(lambda mutant: in_a_tree(run_mutant, mutant, unchanged), ready))


def known(mutant, results):
    """Return whether it was found out what the tests say about a mutant."""
    return mutant.key in results and results[mutant.key].outcome != "stopped"


def alive(result):
    """Return whether the tests did not notice a mutant."""
    return result.outcome == "survived"


def passes(result):
    """Return whether a test file can run here, perhaps without some of its tests."""
    return result.outcome == "passed"


def show(mutants, path):
    """Print the share of dead mutants per module, and the lines of the survivors."""
    results = read_results(path)
    for name in sorted({mutant.module for mutant in mutants}):
        found = [results[m.key] for m in mutants if m.module == name and known(m, results)]
        print_share(name, found)
    every = [results[mutant.key] for mutant in mutants if known(mutant, results)]
    print_share(f"all ({len(mutants) - len(every)} not run)", every)
    for mutant in mutants:
        if known(mutant, results) and alive(results[mutant.key]):
            source = (ROOT / PACKAGE / f"{mutant.module}.py").read_text(encoding="utf-8")
            before, after = source.splitlines(), mutated(mutant).decode().splitlines()
            print(f"\n{mutant.module}.py:{mutant.line} ({mutant.kind}, byte {mutant.begin})")
            print(f"-{before[mutant.line - 1]}\n+{after[mutant.line - 1]}")


def print_share(name, found):
    """Print one line of the table."""
    dead = sum(not alive(result) for result in found)
    share = f"{dead / len(found):4.0%}" if found else "   –"
    print(f"{name:34} {dead:4} of {len(found):4} died {share}")


def main():
    """Run mutants, or print what is known about them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("task", choices=["run", "table"])
    parser.add_argument("--mutants", type=int, default=300, help="number of mutants")
    parser.add_argument("--results", type=Path, default=ROOT / "local/mutants.csv")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--minutes", type=float, default=600, help="start no test after that")
    parser.add_argument("--again", action="store_true", help="run survivors again")
    parser.add_argument("--only", default="*", metavar="PATTERN", help="modules, as in glob")
    options = parser.parse_args()
    mutants = [m for m in sample(options.mutants) if fnmatch(m.module, options.only)]
    if options.task == "run":
        run(mutants, options.results, options.jobs, options.minutes, options.again)
    show(mutants, options.results)


if __name__ == "__main__":
    main()
