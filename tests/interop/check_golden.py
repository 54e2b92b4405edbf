"""check_golden.py FOLDER [SCHEMA]: golden files against an independent definition, and their index against its schema.

Each file: read with the standard library and numpy, computed again in float64, and every expected value within 1e-12 of
the majorant; the definition carried out in float32 stays within the proved bound and the likely limit of every element.
The index: what the schema asks for, one entry a file and one file an entry, SHA-256, every flag explained.
"""

import hashlib
import json
import pathlib
import sys

import numpy as np

import gaugeblock_reference
import json_schema
import safetensors_plain

CLOSE = 1e-12
# What float64 loses below its smallest number, however large the later factors of a product are.
UNDERFLOW = 1e-290


def worst(error, limit):
    """The largest error/limit and where it is. 0/0 is 0; a NaN counts as infinite."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(error == 0, 0.0, np.where(np.isnan(error), np.inf, error / limit))
    if ratio.size == 0:
        return 0.0, ()
    place = np.unravel_index(np.argmax(ratio), ratio.shape)
    return float(ratio[place]), tuple(int(i) for i in place)


def check_index(folder, schema_path):
    problems = []
    with open(folder / "index.json", encoding="utf-8") as stream:
        index = json.load(stream)
    if schema_path:
        with open(schema_path, encoding="utf-8") as stream:
            problems += [f"index.json: {complaint}" for complaint in json_schema.complaints(json.load(stream), index)]
    if problems:
        return problems, []
    ids = [entry["id"] for entry in index["files"]]
    for name in sorted({name for name in ids if ids.count(name) > 1}):
        problems.append(f"index.json: id {name} stands there {ids.count(name)} times")
    used = {flag for entry in index["files"] for flag in entry["flags"]}
    for flag in sorted(used - set(index["flags"])):
        problems.append(f"index.json: flag {flag} is not explained")
    for flag in sorted(set(index["flags"]) - used):
        problems.append(f"index.json: flag {flag} is explained and never used")
    listed = {entry["file"] for entry in index["files"]}
    present = {path.name for path in folder.iterdir() if path.name != "index.json"}
    for name in sorted(present - listed):
        problems.append(f"{name} lies in the folder and is not listed in index.json")
    for name in sorted(listed - present):
        problems.append(f"{name} is listed in index.json and does not lie in the folder")
    for entry in index["files"]:
        if entry["file"] in present:
            digest = hashlib.sha256((folder / entry["file"]).read_bytes()).hexdigest()
            if digest != entry["sha256"]:
                problems.append(f"{entry['file']}: SHA-256 is {digest}, index.json says {entry['sha256']}")
    return problems, [entry for entry in index["files"] if entry["file"] in present]


def check_file(path, entry):
    """Complaints about one file, and the line that is printed about it."""
    metadata, tensors = safetensors_plain.read(path)
    problems = []
    for key, value in (("format", "1"), ("op", entry["op"]), ("case", entry["case"])):
        if metadata.get(f"gaugeblock.{key}") != value:
            problems.append(f"metadata gaugeblock.{key} is {metadata.get(f'gaugeblock.{key}')!r}, expected {value!r}")
    if not metadata.get("gaugeblock.claim", "").startswith(entry["op"] + "."):
        problems.append(f"metadata gaugeblock.claim is {metadata.get('gaugeblock.claim')!r}, expected a claim about {entry['op']}")
    names = sorted(name[len("expected.") :] for name in tensors if name.startswith("expected."))
    if not names:
        return problems + ["no expected values"], ""
    row = tensors.get("expected.row")
    outputs, majorants = gaugeblock_reference.outputs_of(metadata, tensors, row=row)
    rounded, _ = gaugeblock_reference.outputs_of(metadata, tensors, dtype=np.float32)
    figures = []
    for name in names:
        expected, bound, sigma = (tensors[f"{kind}.{name}"] for kind in ("expected", "bound", "sigma"))
        for kind, values in (("expected", expected), ("bound", bound), ("sigma", sigma)):
            if values.dtype != np.float64 or values.shape != outputs[name].shape:
                problems.append(f"{kind}.{name} is {values.dtype} {values.shape}, expected float64 {outputs[name].shape}")
        if problems:
            continue
        with np.errstate(invalid="ignore"):
            same = (expected == outputs[name]) | (np.isnan(expected) & np.isnan(outputs[name]))
            error = np.where(same, 0.0, np.abs(expected - outputs[name]))
        ratio, place = worst(error, CLOSE * majorants[name] + UNDERFLOW)
        if not ratio <= 1:
            problems.append(f"expected.{name}{list(place)} is {expected[place]!r}; computed again {outputs[name][place]!r}")
        if not (bound >= 0).all() or not (sigma >= 0).all():
            problems.append(f"bound.{name} or sigma.{name} has a NaN or a value below 0")
        in_range = np.isfinite(rounded[name]) & np.isfinite(expected)
        float32_error = np.where(in_range, np.abs(rounded[name].astype(np.float64) - expected), 0.0)
        proved, place = worst(float32_error, bound)
        if not proved <= 1:
            problems.append(f"{name}{list(place)} computed in float32 is off by {float32_error[place]!r}, its bound is {bound[place]!r}")
        likely, place = worst(float32_error, 8 * sigma)
        if not likely <= 1:
            problems.append(f"{name}{list(place)} computed in float32 is off by {float32_error[place]!r}, sigma is {sigma[place]!r}")
        if "zeros-pass" in entry["flags"]:
            rejected = np.mean(np.abs(expected) > bound)
            if rejected < 0.99:
                problems.append(f"{name}: the bound rejects zeros in {rejected:.0%} of the elements, the flag promises nearly all")
        figures.append(f"{name} {ratio:.1e} float32 {proved:.2g} of bound, {likely:.2g} of likely")
    return problems, "; ".join(figures)


def main(folder, schema_path=None):
    folder = pathlib.Path(folder)
    problems, entries = check_index(folder, schema_path)
    for entry in entries:
        with np.errstate(over="ignore", invalid="ignore", under="ignore"):
            found, figures = check_file(folder / entry["file"], entry)
        problems += [f"{entry['file']}: {problem}" for problem in found]
        print(f"{entry['id']}: {figures}")
    for problem in problems:
        print(problem, file=sys.stderr)
    print(f"{len(entries)} golden files, {len(problems)} complaints")
    return 1 if problems or not entries else 0


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3):
        sys.exit("usage: check_golden.py FOLDER [SCHEMA]")
    sys.exit(main(*sys.argv[1:]))
