"""check_against_program.py PROGRAM: the program's CPU variants against an independent definition.

Random problems are written with the standard library and numpy, as a user's script would. Every CPU variant runs on each of
them. Its output lies within a float32 tolerance, scaled by the majorant, of the definition in float64, and `judge` passes it;
with one element moved far off it fails.
"""

import json
import pathlib
import subprocess
import sys
import tempfile

import numpy as np

import gaugeblock_reference
import safetensors_plain

U = 2.0**-24


def call(program, *arguments, codes=(0,)):
    result = subprocess.run([program, *map(str, arguments)], capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    if result.returncode not in codes:
        raise SystemExit(
            f"{program} {' '.join(map(str, arguments))}: exit code {result.returncode}, expected one of {codes}\n{result.stderr}{result.stdout}"
        )
    return result


def problems(random):
    """Name, metadata and tensors of each problem."""

    def normal(*shape):
        return random.standard_normal(shape).astype(np.float32)

    for B, T, H, K, V, gates, state in (
        (2, 33, 3, 24, 24, "uniform", True),
        (1, 65, 2, 5, 7, "near one", False),
        (1, 1, 1, 1, 1, "uniform", True),
        (2, 0, 2, 3, 5, "uniform", True),
        (1, 17, 2, 33, 4, "negative", True),
        (1, 16, 1, 4, 4, "tiny", False),
    ):
        gate = random.random((B, T, H))
        gate = {"uniform": gate, "near one": 1 - 1e-3 * gate, "negative": 2 * gate - 1, "tiny": 1e-11 * gate}[gates]
        tensors = {"q": normal(B, T, H, K), "k": normal(B, T, H, K), "v": normal(B, T, H, V)}
        tensors |= {"gate": gate.astype(np.float32), "beta": normal(B, T, H)}
        if state:
            tensors["initial_state"] = normal(B, H, K, V)
        yield f"recurrence B={B} T={T} H={H} K={K} V={V} {gates}", {"gaugeblock.op": "recurrence"}, tensors

    for B, H, W, D, heads, passes in (
        (2, 3, 5, 12, 3, "both"),
        (1, 9, 2, 24, 1, "col"),
        (1, 2, 33, 16, 16, "row"),
        (1, 1, 1, 8, 2, "both"),
    ):
        tensors = {"x": normal(B, H, W, D)}
        for name in ("row", "col"):
            tensors[f"{name}_norm.weight"] = 1 + normal(D) / 8
            tensors[f"{name}_norm.bias"] = normal(D) / 8
            tensors[f"{name}_qkv.weight"] = normal(3 * D, D) / np.float32(np.sqrt(D))
            tensors[f"{name}_out.weight"] = normal(D, D) / np.float32(np.sqrt(D))
            tensors[f"{name}_out.bias"] = normal(D) / 8
        # The names of the tensors tell the operation.
        yield (
            f"axial B={B} H={H} W={W} D={D} heads={heads} {passes}",
            {"gaugeblock.heads": str(heads), "gaugeblock.passes": passes},
            tensors,
        )


def tolerance(operation, tensors, majorant):
    if operation == "recurrence":
        # No order of the sums and no form needs more roundings than this on the way from an input to an output.
        steps, channels = tensors["q"].shape[1], tensors["q"].shape[3]
        return (3 * steps + channels + 8) * U * majorant + 1e-38
    return 4 * U * majorant + 1e-38


def main(program):
    random = np.random.default_rng(20240517)
    variants = json.loads(call(program, "list", "--json").stdout)
    judged = {}
    declined = 0
    with tempfile.TemporaryDirectory() as folder:
        given, made, moved = (pathlib.Path(folder) / name for name in ("given", "made", "moved"))
        for name, metadata, tensors in problems(random):
            operation = name.split()[0]
            safetensors_plain.write(given, tensors, metadata)
            outputs, majorants = gaugeblock_reference.outputs_of({"gaugeblock.op": operation, **metadata}, tensors)
            for variant in variants:
                if variant["op"] != operation or "cpu" not in variant["backends"]:
                    continue
                made.unlink(missing_ok=True)
                run = call(program, "run", "--variant", variant["name"], "--input", given, "--output", made, codes=(0, 4))
                if run.returncode == 4:
                    declined += 1
                    assert not made.exists() and run.stderr.strip(), f"{variant['name']} declines {name} without a word"
                    continue
                _, actual = safetensors_plain.read(made)
                for output in set(outputs) & set(actual):
                    error = np.abs(actual[output].astype(np.float64) - outputs[output])
                    limit = tolerance(operation, tensors, majorants[output])
                    if not (error <= limit).all():
                        worst = np.unravel_index(np.argmax(error - limit), error.shape)
                        raise SystemExit(
                            f"{variant['name']} on {name}: {output}{list(worst)} is {actual[output][worst]!r}, "
                            f"the definition gives {outputs[output][worst]!r} within {limit[worst]!r}"
                        )
                call(program, "judge", "--input", given, "--actual", made, codes=(0,))
                if actual["y"].size:
                    wrong = {output: values.copy() for output, values in actual.items()}
                    wrong["y"].flat[-1] += 100 * (1 + np.abs(outputs["y"]).max())
                    safetensors_plain.write(moved, wrong)
                    call(program, "judge", "--input", given, "--actual", moved, codes=(1,))
                judged[variant["name"]] = judged.get(variant["name"], 0) + 1
    for variant, count in sorted(judged.items()):
        print(f"{variant}: {count} problems")
    print(f"{sum(judged.values())} outputs compared, {declined} problems declined")
    return 0 if judged else 1


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: check_against_program.py PROGRAM")
    sys.exit(main(sys.argv[1]))
