"""What the project imports, declares and pins agree, so that a fresh machine gets all of it."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
OURS = {"bridge", "routes", "ui_backends", "tests"}
CONSTRAINTS = sorted((ROOT / "constraints").glob("*.txt"))


def plain(requirement: str) -> str:
    """The normalised name of a requirement."""
    name = re.match(r"[A-Za-z0-9._-]+", requirement)
    assert name is not None, requirement
    return re.sub(r"[-_.]+", "-", name[0]).lower()


FROM_DEBIAN = {"PyQt5"}
"""What programs beside the tests import that run in Debian's own Python; see scripts/setup."""


def imported(folder: str) -> set[str]:
    """Top-level packages from elsewhere that the Python files of a folder import."""
    found: set[str] = set()
    for file in (ROOT / folder).rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Import):
                found |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
                found.add(node.module.partition(".")[0])
    return found - OURS - sys.stdlib_module_names


def undeclared(folder: str, declared: set[str]) -> dict[str, list[str]]:
    """Imported packages that no declared distribution brings."""
    brought_by = packages_distributions()
    return {
        name: brought_by.get(name, [])
        for name in imported(folder)
        if not declared & {plain(one) for one in brought_by.get(name, [])}
    }


@pytest.mark.parametrize("folder", ["bridge", "routes", "ui_backends"])
def test_what_the_product_imports_is_declared(folder: str):
    assert undeclared(folder, {plain(one) for one in PROJECT["dependencies"]}) == {}


def test_what_the_tests_import_is_declared():
    dev = PROJECT["optional-dependencies"]["dev"]
    missing = undeclared("tests", {plain(one) for one in [*PROJECT["dependencies"], *dev]})
    assert set(missing) == FROM_DEBIAN


@pytest.mark.parametrize("file", CONSTRAINTS, ids=lambda file: file.stem)
def test_pins_are_names_and_versions_only_and_cover_all(file: Path):
    lines = file.read_text().splitlines()
    assert [line for line in lines if not re.fullmatch(r"[\w.-]+==[\w.]+", line)] == []
    pinned = {plain(line) for line in lines}
    wanted = [*PROJECT["dependencies"], *PROJECT["optional-dependencies"]["dev"]]
    assert {plain(one) for one in wanted} - pinned == set()


def test_the_running_python_has_pins():
    assert f"py{sys.version_info[0]}{sys.version_info[1]}" in {file.stem for file in CONSTRAINTS}
