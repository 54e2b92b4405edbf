"""check_safetensors_package.py FOLDER: the package `safetensors` reads every golden file and finds the same bytes in it."""

import pathlib
import sys

import safetensors_plain

NOT_RUN = 77


def main(folder):
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
    return 0 if paths else 1


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: check_safetensors_package.py FOLDER")
    sys.exit(main(sys.argv[1]))
