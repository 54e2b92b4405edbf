"""check_golden_against_program.py FOLDER PROGRAM: the golden files judge right and wrong outputs rightly.

Every CPU variant runs on every golden file of its operation, unless it declines with a reason, and `judge` passes what it gives.
The expected values themselves pass; with one element moved by twice its bound, `judge` fails and names the element.
"""

import collections
import json
import pathlib
import sys
import tempfile

import numpy as np

import safetensors_plain
from check_against_program import call

ALL_VACUOUS_OR_DECLINED = 4


def moved_by_twice_its_bound(actual, tensors):
    """Each output with one element so moved, and where: an element that float32 can show it of, in the middle."""
    for name, values in actual.items():
        expected, bound = tensors[f"expected.{name}"], tensors[f"bound.{name}"]
        with np.errstate(over="ignore", invalid="ignore"):
            wrong = (expected + 2 * bound).astype(np.float32)
            error = np.abs(wrong.astype(np.float64) - expected)
        candidates = np.flatnonzero((error > bound) & np.isfinite(error) & np.isfinite(bound) & (bound > 0))
        if candidates.size:
            place = int(candidates[candidates.size // 2])
            spoiled = {output: array.copy() for output, array in actual.items()}
            spoiled[name].flat[place] = wrong.flat[place]
            yield name, [int(i) for i in np.unravel_index(place, values.shape)], spoiled


def main(folder, program):
    variants = json.loads(call(program, "list", "--backend", "cpu", "--json").stdout)
    counts = collections.Counter()
    for path in sorted(pathlib.Path(folder).glob("*.safetensors")):
        metadata, tensors = safetensors_plain.read(path)
        with tempfile.TemporaryDirectory() as place:
            made = pathlib.Path(place) / "made"
            for variant in variants:
                if variant["op"] != metadata["gaugeblock.op"]:
                    continue
                run = call(program, "run", "--variant", variant["name"], "--input", path, "--output", made, codes=(0, ALL_VACUOUS_OR_DECLINED))
                if run.returncode:
                    counts["declined"] += 1
                    continue
                judged = call(program, "judge", "--input", path, "--actual", made, codes=(0, ALL_VACUOUS_OR_DECLINED))
                counts["passed" if judged.returncode == 0 else "vacuous"] += 1

            # `row` is left out: with it y would be judged against the column pass of that row.
            names = [name[len("expected.") :] for name in tensors if name.startswith("expected.") and name != "expected.row"]
            actual = {name: tensors[f"expected.{name}"].astype(np.float32) for name in names}
            safetensors_plain.write(made, actual)
            call(program, "judge", "--input", path, "--actual", made, codes=(0, ALL_VACUOUS_OR_DECLINED))
            for name, index, spoiled in moved_by_twice_its_bound(actual, tensors):
                safetensors_plain.write(made, spoiled)
                verdict = json.loads(call(program, "judge", "--input", path, "--actual", made, "--json", codes=(1,)).stdout)
                if (verdict["outcome"], verdict["tensor"], verdict["index"]) != ("fail", name, index):
                    sys.exit(f"{path}: {name}{index} was moved by twice its bound, judge says {verdict}")
                counts["moved and found"] += 1
    print(", ".join(f"{name}: {count}" for name, count in sorted(counts.items())))
    return 0 if counts["passed"] and counts["moved and found"] else 1


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: check_golden_against_program.py FOLDER PROGRAM")
    sys.exit(main(*sys.argv[1:]))
