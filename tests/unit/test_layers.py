"""Imports go downwards. Read from the sources: imports inside functions and under TYPE_CHECKING count as well."""

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

LAYERS = {
    0: (
        "",
        "errors",
        "canonical",
        "originals",
        "stats",
        "peaks",
        "decision",
        "stability",
        "seeds",
        "sentences",
        "energy_budget",
        "stamp",
        "_stamp",
        "text",
        "redact",
        "model",
        "processes",
        "cuda_driver",
        "user_cache",
        "settings",
    ),
    1: ("validate", "plugin", "kernels"),
    2: ("config", "plan"),
    3: ("timing", "graph", "check", "energy", "probe"),
    4: ("run", "report", "doctor", "compare", "conformance", "explain", "sanitize"),
    5: ("cli", "__main__"),
}
LAYER_OF = {unit: layer for layer, units in LAYERS.items() for unit in units}
STANDS_ALONE = ("validate", "plugin")  # these see layer 0 and nothing beside them
SEES = {"kernels": ("plugin",), "compare": ("validate",), "explain": ("validate",)}  # these see layer 0 and what is named

WORKER_SIDE = (
    "mkframe.run.worker",
    "mkframe.run.classify",
    "mkframe.run.opened_case",
    "mkframe.run.defences",
    "mkframe.run.watched",
    "mkframe.run.worker_device",
    "mkframe.conformance.child",
    "mkframe.conformance.bench",
    "mkframe.conformance.cells",
    "mkframe.conformance.traces",
    "mkframe.sanitize.child",
)
# Heavy or fragile packages, and the units that may import them.
ALLOWED = {
    "torch": ("timing", "graph", "check", "energy", "probe"),
    "hydra": ("config", "cli"),
    "omegaconf": ("config", "cli"),
    "pynvml": ("plan", "timing", "energy", "run"),
}
OPEN_TO_PLUGINS = ("plugin", "kernels")
KERNEL_LANGUAGES = ("cutlass", "triton")
LOADER = "mkframe.plugin.loader"
MAX_LINES = 300


@dataclass(frozen=True, kw_only=True)
class Import:
    """`eager`: happens when the importing module is imported."""

    target: str
    line: int
    eager: bool


class ImportFinder(ast.NodeVisitor):
    """Collects the imports of one module. `known`: the modules that exist, to tell `from package import module`."""

    def __init__(self, module: str, is_package: bool, known: set[str]) -> None:
        self.package = module if is_package else module.rpartition(".")[0]
        self.known = known
        self.found: list[Import] = []
        self.eager = True

    def _add(self, target: str, node: ast.AST) -> None:
        self.found.append(Import(target=target, line=getattr(node, "lineno", 0), eager=self.eager))

    def _lazily(self, nodes: list[ast.stmt]) -> None:
        before, self.eager = self.eager, False
        for node in nodes:
            self.visit(node)
        self.eager = before

    def visit_Import(self, node: ast.Import) -> None:
        for alias in node.names:
            self._add(alias.name, node)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        base = node.module or ""
        if node.level:
            parents = self.package.split(".")
            base = ".".join([*parents[: len(parents) - node.level + 1], *filter(None, [base])])
        for alias in node.names:
            inner = f"{base}.{alias.name}"
            self._add(inner if inner in self.known else base, node)

    def visit_Call(self, node: ast.Call) -> None:
        name = node.func.attr if isinstance(node.func, ast.Attribute) else node.func.id if isinstance(node.func, ast.Name) else ""
        first = node.args[0] if node.args else None
        if name in ("import_module", "__import__") and isinstance(first, ast.Constant) and isinstance(first.value, str):
            self._add(first.value, node)
        self.generic_visit(node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        self._lazily(node.body)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> None:
        self._lazily(node.body)

    def visit_If(self, node: ast.If) -> None:
        if ast.unparse(node.test) in ("TYPE_CHECKING", "typing.TYPE_CHECKING"):
            self._lazily(node.body)
            for other in node.orelse:
                self.visit(other)
        else:
            self.generic_visit(node)


Imports = Mapping[str, tuple[Import, ...]]


def imports_of(sources: Mapping[str, str], packages: set[str]) -> Imports:
    known = set(sources)
    found = {}
    for name, source in sources.items():
        finder = ImportFinder(name, name in packages, known)
        finder.visit(ast.parse(source))
        found[name] = tuple(finder.found)
    return found


def within(module: str, package: str) -> bool:
    return module == package or module.startswith(f"{package}.")


def unit_of(module: str) -> str:
    """`mkframe.run.worker` -> `run`; `mkframe` itself -> ``."""
    return [*module.split("."), ""][1]


def violations(sources: Mapping[str, str], packages: set[str]) -> list[str]:
    imports = imports_of(sources, packages)
    return [
        *_layer_violations(imports),
        *_cycle_violations(imports),
        *_package_violations(imports),
        *_plugin_violations(imports),
        *_torch_violations(imports),
        *_length_violations(sources, imports),
    ]


def _layer_violations(imports: Imports) -> Iterator[str]:
    for module, found in imports.items():
        if not within(module, "mkframe"):
            continue
        unit = unit_of(module)
        if unit not in LAYER_OF:
            yield f"{module}: belongs to no layer"
            continue
        for one in found:
            target = unit_of(one.target)
            if not within(one.target, "mkframe") or target == unit or target not in LAYER_OF:
                continue
            if LAYER_OF[target] > LAYER_OF[unit]:
                yield f"{module}:{one.line}: imports {one.target} from a higher layer"
            elif unit in STANDS_ALONE and LAYER_OF[target] > 0:
                yield f"{module}:{one.line}: imports {one.target}, but {unit} stands alone"
            elif unit in SEES and LAYER_OF[target] > 0 and target not in SEES[unit]:
                yield f"{module}:{one.line}: imports {one.target}, but {unit} sees only {', '.join(SEES[unit])}"


def _cycle_violations(imports: Imports) -> Iterator[str]:
    """Units of one layer may use each other in one direction only."""
    uses: dict[str, set[str]] = {}
    for module, found in imports.items():
        if within(module, "mkframe"):
            uses.setdefault(unit_of(module), set()).update(unit_of(one.target) for one in found if within(one.target, "mkframe"))
    for unit in uses:
        if unit in _reached(unit, {name: targets - {name} for name, targets in uses.items()}):
            yield f"mkframe.{unit}: imports itself by way of other packages"


def _reached(start: str, uses: Mapping[str, set[str]]) -> set[str]:
    seen: set[str] = set()
    queue = [start]
    while queue:
        for target in uses.get(queue.pop(), ()):
            if target not in seen:
                seen.add(target)
                queue.append(target)
    return seen


def _package_violations(imports: Imports) -> Iterator[str]:
    for module, found in imports.items():
        for one in found:
            head = one.target.split(".")[0]
            if not within(module, "mkframe") or module == LOADER:
                continue
            if head == "mkframe_plugins":
                yield f"{module}:{one.line}: imports {one.target}; only {LOADER} may"
            if head in ALLOWED and unit_of(module) not in ALLOWED[head] and not (head == "torch" and module in WORKER_SIDE):
                yield f"{module}:{one.line}: imports {head}"


def _plugin_violations(imports: Imports) -> Iterator[str]:
    for module, found in imports.items():
        if within(module, "mkframe_plugins"):
            for one in found:
                if within(one.target, "mkframe") and unit_of(one.target) not in OPEN_TO_PLUGINS:
                    yield f"{module}:{one.line}: imports {one.target}; plugins use mkframe.plugin and mkframe.kernels alone"


def _torch_violations(imports: Imports) -> Iterator[str]:
    """Nothing on the coordinator's side, and no plugin, may load torch by being imported, however indirectly."""
    eager = {module: {one.target for one in found if one.eager} for module, found in imports.items()}
    for module in imports:
        # Importing a.b.c imports a and a.b too.
        eager[module] |= {parent for target in set(eager[module]) for parent in _parents(target)}
    for module in imports:
        if within(module, "mkframe") and (unit_of(module) in ALLOWED["torch"] or module in WORKER_SIDE):
            continue
        if any(within(target, "torch") for target in _reached(module, eager)):
            yield f"{module}: loads torch when imported"


def _parents(module: str) -> Iterator[str]:
    parts = module.split(".")
    return (".".join(parts[:count]) for count in range(1, len(parts)))


def _length_violations(sources: Mapping[str, str], imports: Imports) -> Iterator[str]:
    for module, source in sources.items():
        is_kernel = any(one.target.split(".")[0] in KERNEL_LANGUAGES for one in imports[module])
        lines = len(source.splitlines())
        if lines > MAX_LINES and not is_kernel:
            yield f"{module}: {lines} lines"


def read(root: Path) -> tuple[dict[str, str], set[str]]:
    """Sources of mkframe and the built-in plugins by import name, and which of them are packages."""
    sources, packages = {}, set()
    for name, folder in {"mkframe": root / "mkframe", "mkframe_plugins": root / "plugins"}.items():
        for path in sorted(folder.rglob("*.py")):
            parts = [name, *path.relative_to(folder).with_suffix("").parts]
            if parts[-1] == "__init__":
                parts.pop()
                packages.add(".".join(parts))
            sources[".".join(parts)] = path.read_text(encoding="utf-8")
    return sources, packages


def test_this_repository_keeps_to_its_layers(root: Path) -> None:
    sources, packages = read(root)
    assert {"mkframe.errors", "mkframe.plugin.loader", "mkframe_plugins"} <= set(sources)
    assert violations(sources, packages) == []


CLEAN = {
    "mkframe": "__version__ = '1'",
    "mkframe.errors": "",
    "mkframe.model": "",
    "mkframe.model.plan": "from mkframe.errors import UsageError",
    "mkframe.validate": "from mkframe import errors",
    "mkframe.plugin": "from mkframe.model.plan import RunPlan",
    "mkframe.plugin.loader": "import importlib\nimportlib.import_module('mkframe_plugins')",
    "mkframe.kernels": "from mkframe.plugin import KernelNode",
    "mkframe.config": "import hydra\nfrom omegaconf import OmegaConf",
    "mkframe.plan": "from mkframe.config import x\n\ndef f():\n    import pynvml",
    "mkframe.timing": "import torch.cuda\nfrom mkframe import __version__",
    "mkframe.run": "",
    "mkframe.run.worker": "def work():\n    import torch\n    from mkframe.timing import x",
    "mkframe.run.coordinator": "from mkframe.run.worker import work\nfrom mkframe.plan import x",
    "mkframe.cli": "from mkframe.run import coordinator",
    "mkframe_plugins": "",
    "mkframe_plugins.mlp": "from mkframe.plugin import Engine\nfrom mkframe_plugins import other\n\ndef bind():\n    import torch",
    "mkframe_plugins.other": "from mkframe.plugin.workload import x\nfrom mkframe.kernels import node",
    "mkframe_plugins.kernel": "def bind():\n    import cutlass\n" + "x = 1\n" * 400,
}
PACKAGES = {name for name in CLEAN if "." not in name or name.count(".") == 1}


def test_a_clean_tree_has_no_violations() -> None:
    assert violations(CLEAN, PACKAGES) == []


@pytest.mark.parametrize(
    ("module", "added", "expected"),
    [
        ("mkframe.errors", "from mkframe.model import plan", "mkframe.errors: imports itself by way of other packages"),
        ("mkframe.model.plan", "from mkframe.plan import x", "imports mkframe.plan from a higher layer"),
        ("mkframe.model.plan", "from mkframe import validate", "imports mkframe.validate from a higher layer"),
        ("mkframe.model.plan", "def f():\n    import mkframe.cli", "imports mkframe.cli from a higher layer"),
        ("mkframe.model.plan", "if TYPE_CHECKING:\n    from mkframe.run import x", "imports mkframe.run from a higher layer"),
        ("mkframe.model.plan", "from ..run import coordinator", "imports mkframe.run.coordinator from a higher layer"),
        ("mkframe.model.plan", "import importlib\nimportlib.import_module('mkframe.cli')", "imports mkframe.cli from a higher layer"),
        (
            "mkframe.plan",
            "class A:\n    async def f(self):\n        from mkframe.timing import x",
            "imports mkframe.timing from a higher layer",
        ),
        ("mkframe.validate", "from mkframe.plugin import Engine", "but validate stands alone"),
        ("mkframe.compare", "from mkframe.report import x", "but compare sees only validate"),
        ("mkframe.kernels", "from mkframe.validate import x", "but kernels sees only plugin"),
        ("mkframe.kernels", "def f():\n    from mkframe.graph import driver", "imports mkframe.graph from a higher layer"),
        ("mkframe.kernels", "import torch", "imports torch"),
        ("mkframe.config", "from mkframe.plan import x", "mkframe.config: imports itself by way of other packages"),
        ("mkframe.newcomer", "", "mkframe.newcomer: belongs to no layer"),
        ("mkframe.plan", "def f():\n    import torch", "mkframe.plan:6: imports torch"),
        ("mkframe.plan", "from torch.version import cuda", "imports torch"),
        ("mkframe.run.coordinator", "def f():\n    import torch", "imports torch"),
        ("mkframe.run.coordinator", "from mkframe.timing import x", "mkframe.run.coordinator: loads torch when imported"),
        (
            "mkframe.run.coordinator",
            "try:\n    from mkframe import timing\nexcept ImportError: pass",
            "mkframe.cli: loads torch when imported",
        ),
        ("mkframe.run", "import mkframe.timing.cpu", "mkframe.run: loads torch when imported"),
        ("mkframe.timing", "import omegaconf", "imports omegaconf"),
        ("mkframe.run", "if x:\n    import hydra", "imports hydra"),
        ("mkframe.model", "import pynvml", "imports pynvml"),
        ("mkframe.run", "from mkframe_plugins.mlp import x", "only mkframe.plugin.loader may"),
        ("mkframe_plugins.mlp", "from mkframe.errors import x", "plugins use mkframe.plugin and mkframe.kernels alone"),
        ("mkframe_plugins.mlp", "def bind():\n    from mkframe.check import x", "plugins use mkframe.plugin and mkframe.kernels alone"),
        ("mkframe_plugins.other", "import torch", "mkframe_plugins.mlp: loads torch when imported"),
        ("mkframe.stats", "x = 1\n" * 301, "mkframe.stats: 301 lines"),
    ],
)
def test_a_planted_violation_is_found(module: str, added: str, expected: str) -> None:
    planted = {**CLEAN, module: f"{CLEAN.get(module, '')}\n{added}" if module in CLEAN else added}
    found = violations(planted, PACKAGES)
    assert any(expected in line for line in found), found
