"""check_json_outputs.py PROGRAM SCHEMAS: what the program prints with --json is what the schemas say, and JSON alone."""

import json
import pathlib
import subprocess
import sys
import tempfile

import numpy as np

import gaugeblock_reference
import json_schema
import safetensors_plain


def main(program, schemas):
    schemas = pathlib.Path(schemas)
    complaints = []

    def check(*arguments):
        result = subprocess.run([program, *map(str, arguments), "--json"], capture_output=True, text=True, check=False)
        command = " ".join(map(str, arguments))
        schema = json.loads((schemas / f"{arguments[0]}.schema.json").read_text(encoding="utf-8"))
        try:
            value = json.loads(result.stdout)
        except json.JSONDecodeError as error:
            complaints.append(f"{command}: {error}; exit code {result.returncode}; {result.stderr}")
            return
        complaints.extend(f"{command}: {complaint}" for complaint in json_schema.complaints(schema, value))
        print(f"{command}: exit code {result.returncode}, {len(result.stdout)} characters")

    check("list")
    for operation in ("recurrence", "axial"):
        check("verify", "--op", operation, "--backend", "cpu", "--cases", 3, "--seed", 5)
    check("bench", "--case", "recurrence:T=5,K=3,V=2", "--case", "axial:B=1,H=2,W=3,D=4")
    random = np.random.default_rng(3)
    shapes = {"q": (1, 3, 2, 4), "k": (1, 3, 2, 4), "v": (1, 3, 2, 5), "gate": (1, 3, 2), "beta": (1, 3, 2)}
    tensors = {name: random.random(shape).astype(np.float32) for name, shape in shapes.items()}
    outputs, _ = gaugeblock_reference.recurrence(**tensors)
    with tempfile.TemporaryDirectory() as folder:
        given, made = (pathlib.Path(folder) / name for name in ("given", "made"))
        safetensors_plain.write(given, tensors)
        for spoiled in (0.0, 1.0, np.inf, np.nan):
            actual = {name: values.astype(np.float32) for name, values in outputs.items()}
            actual["y"].flat[7] += spoiled
            safetensors_plain.write(made, actual)
            check("judge", "--input", given, "--actual", made)
    for complaint in complaints:
        print(complaint, file=sys.stderr)
    print(f"{len(complaints)} complaints")
    return 1 if complaints else 0


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: check_json_outputs.py PROGRAM SCHEMAS")
    sys.exit(main(*sys.argv[1:]))
