"""How long `validate` takes for reports of 1, 10 and 40 MB, built by repeating a recorded one. Prints one line each.

python benchmarks/validate_speed.py
"""

import json
import tempfile
import time
from pathlib import Path

from mkframe.validate import validate

RECORDED = Path(__file__).parent.parent / "tests" / "data" / "valid" / "residual-mlp-rtx3090.json"


def main() -> None:
    recorded = json.loads(RECORDED.read_text())
    cases = recorded["development"] + recorded["assessment"]
    with tempfile.TemporaryDirectory() as folder:
        for megabytes in (1, 10, 40):
            sets = {f"set_{index}": cases for index in range(20 * megabytes)}
            path = Path(folder) / "report.json"
            path.write_text(json.dumps(recorded | sets, indent=2))
            start = time.perf_counter()
            result = validate(path)
            assert result.ok, result.findings[:3]
            print(f"{path.stat().st_size / 1e6:6.1f} MB  {time.perf_counter() - start:6.2f} s")


if __name__ == "__main__":
    main()
