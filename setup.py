"""Packages of the wheel, and its stamp: the commit that it was built from. Everything else: pyproject.toml."""

import shutil
import sys
from pathlib import Path
from typing import Any

from setuptools import find_namespace_packages, setup
from setuptools.command.build_py import build_py
from setuptools.command.sdist import sdist

ROOT = Path(__file__).resolve().parent
RENAMED = {"mkframe_plugins": "plugins", "mkframe_conf": "conf", "mkframe_schemas": "schemas"}
STAMP = Path("mkframe", "_stamp.py")


def packages() -> list[str]:
    """Import names: mkframe and mkframe_plugins with every sub-package, and the two folders of data."""
    plugins = find_namespace_packages(str(ROOT / "plugins"))
    return [
        "mkframe",
        *(f"mkframe.{name}" for name in find_namespace_packages(str(ROOT / "mkframe"))),
        "mkframe_plugins",
        *(f"mkframe_plugins.{name}" for name in plugins),
        "mkframe_conf",
        "mkframe_schemas",
    ]


def write_stamp(folder: str) -> None:
    """Writes the stamp into a build folder. A build from an sdist has no checkout and keeps the stamp that came with it."""
    sys.path.insert(0, str(ROOT))
    from mkframe.stamp import source_commit, source_dirty

    commit = source_commit()
    target = Path(folder, STAMP)
    if commit is None or not target.parent.is_dir():
        return
    # A fresh file: the existing one may be a hard link into the source folder.
    target.unlink(missing_ok=True)
    target.write_text(f'"""Written when this package was built."""\n\nCOMMIT = {commit!r}\nDIRTY = {source_dirty()!r}\n', encoding="utf-8")


class StampedBuild(build_py):
    def run(self) -> None:
        if not self.editable_mode:
            # Modules deleted since an earlier build would still be packed.
            shutil.rmtree(self.build_lib, ignore_errors=True)
        super().run()
        if not self.editable_mode:
            write_stamp(self.build_lib)


class StampedSdist(sdist):
    def make_release_tree(self, base_dir: str, files: Any) -> None:
        super().make_release_tree(base_dir, files)
        write_stamp(base_dir)


setup(
    packages=packages(),
    package_dir=RENAMED,
    cmdclass={"build_py": StampedBuild, "sdist": StampedSdist},
)
