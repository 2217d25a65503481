"""The wheel and the README."""

import re
import subprocess
import sys
import zipfile
from importlib.util import find_spec
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    target = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(target)]
    subprocess.run(command, cwd=FOLDER, check=True, capture_output=True, timeout=300)
    (built,) = target.glob("*.whl")
    return zipfile.ZipFile(built)


def test_the_wheel_contains_package_types_and_licence(wheel):
    names = set(wheel.namelist())
    sources = {f"batchscan/{path.name}" for path in (FOLDER / "src" / "batchscan").iterdir() if path.is_file()}
    assert sources <= names and "batchscan/py.typed" in names
    assert any(name.endswith("LICENSE") for name in names)
    assert not any("test" in name or "example" in name for name in names)


@pytest.fixture(scope="module")
def metadata(wheel: zipfile.ZipFile) -> str:
    return wheel.read(next(name for name in wheel.namelist() if name.endswith("METADATA"))).decode()


def test_requests_is_the_only_required_dependency(metadata):
    needed = [line for line in re.findall(r"^Requires-Dist: (.*)$", metadata, re.M) if "extra ==" not in line]
    assert needed == ["requests>=2.31"]
    assert set(re.findall(r"^Provides-Extra: (.*)$", metadata, re.M)) == {"dlt", "pandas", "polars"}


def test_the_metadata_is_complete(metadata):
    present = set(re.findall(r"^([A-Z][A-Za-z-]+): .", metadata, re.M))
    assert {"Summary", "Author", "License-Expression", "License-File", "Keywords", "Description-Content-Type"} <= present
    assert "License-Expression: MIT" in metadata and "Requires-Python: >=3.10" in metadata
    assert "Classifier: Typing :: Typed" in metadata and "Classifier: Operating System :: OS Independent" in metadata


def test_importing_the_package_imports_no_extra():
    code = "import batchscan, sys; print(*{'pandas', 'polars', 'dlt'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], cwd=FOLDER / "src", capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""


def test_the_error_of_a_missing_dlt_names_the_extra():
    assert find_spec("dlt"), "dlt must be installed for this test"
    code = "import sys; sys.modules['dlt'] = None\nimport batchscan.dlt"
    done = subprocess.run([sys.executable, "-c", code], cwd=FOLDER / "src", capture_output=True, text=True)
    assert "ImportError: dlt is not installed; pip install 'batchscan[dlt]'" in done.stderr


def test_the_examples_in_the_readme_compile():
    examples = re.findall(r"```python\n(.*?)```", (FOLDER / "README.md").read_text(), re.S)
    assert examples
    for example in examples:
        compile(example, "README.md", "exec")
