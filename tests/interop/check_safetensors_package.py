"""check_safetensors_package.py FOLDER PROGRAM: the package `safetensors` and this project read each other's files.

The package reads every golden file in FOLDER and finds the same bytes in it; PROGRAM judges a problem and outputs that the
package wrote.
"""

import pathlib
import subprocess
import sys
import tempfile

import numpy as np

import gaugeblock_reference
import safetensors_plain

NOT_RUN = 77


def judge_theirs(program, save_file):
    """The exit code of `judge` for files that the package's own `save_file` wrote."""
    random = np.random.default_rng(11)
    shapes = {"q": (2, 5, 3, 4), "k": (2, 5, 3, 4), "v": (2, 5, 3, 6), "gate": (2, 5, 3), "beta": (2, 5, 3)}
    inputs = {name: random.random(shape).astype(np.float32) for name, shape in shapes.items()}
    outputs, _ = gaugeblock_reference.recurrence(**inputs, dtype=np.float32)
    with tempfile.TemporaryDirectory() as place:
        given, made = (pathlib.Path(place) / name for name in ("given.safetensors", "made.safetensors"))
        save_file(inputs, given, metadata={"gaugeblock.op": "recurrence", "framework": "numpy"})
        save_file({name: np.ascontiguousarray(values) for name, values in outputs.items()}, made)
        result = subprocess.run([program, "judge", "--input", given, "--actual", made], capture_output=True, text=True, check=False)
        print(result.stdout + result.stderr, end="")
        return result.returncode


def main(folder, program):
    try:
        import safetensors
        import safetensors.numpy
    except ImportError:
        print("not run: the package safetensors is not installed")
        return NOT_RUN
    paths = sorted(pathlib.Path(folder).glob("*.safetensors"))
    for path in paths:
        metadata, tensors = safetensors_plain.read(path)
        theirs = safetensors.numpy.load_file(path)
        with safetensors.safe_open(path, framework="numpy") as stream:
            their_metadata = stream.metadata() or {}
        if their_metadata != metadata:
            sys.exit(f"{path}: metadata {metadata}, the package finds {their_metadata}")
        if set(theirs) != set(tensors):
            sys.exit(f"{path}: tensors {sorted(tensors)}, the package finds {sorted(theirs)}")
        for name, values in tensors.items():
            other = theirs[name]
            if other.dtype != values.dtype or other.shape != values.shape or other.tobytes() != values.tobytes():
                sys.exit(f"{path}: {name} is {values.dtype} {values.shape}, the package finds {other.dtype} {other.shape} or other values")
    print(f"{len(paths)} files, the same bytes in each")
    if judge_theirs(program, safetensors.numpy.save_file) != 0:
        sys.exit("judge does not pass a right output in a file that the package wrote")
    return 0 if paths else 1


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: check_safetensors_package.py FOLDER PROGRAM")
    sys.exit(main(*sys.argv[1:]))
