"""check_device_index.py FOLDER SCHEMA: every index.json below the folder is what its schema says, and lists the files beside it
with their hashes: none missing, none changed, none more."""

import hashlib
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "interop"))
import json_schema  # noqa: E402  the path above


def complaints_of(folder, schema):
    index = json.loads((folder / "index.json").read_text(encoding="utf-8"))
    complaints = json_schema.complaints(schema, index)
    listed = {"index.json"}
    for variant in index["variants"]:
        for case, wanted in variant["outputs"].items():
            name = f"{case}/{variant['name']}.safetensors"
            listed.add(name)
            path = folder / name
            found = hashlib.sha256(path.read_bytes()).hexdigest() if path.exists() else "no file"
            if found != wanted:
                complaints.append(f"{name}: expected SHA-256 {wanted}, found {found}")
    there = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    return complaints + [f"{name}: expected only what the index lists" for name in sorted(there - listed)]


def main(folder, schema):
    schema = json.loads(pathlib.Path(schema).read_text(encoding="utf-8"))
    complaints = []
    folders = [path.parent for path in sorted(pathlib.Path(folder).glob("*/index.json"))]
    for each in folders:
        complaints += [f"{each.name}: {complaint}" for complaint in complaints_of(each, schema)]
    for complaint in complaints:
        print(complaint)
    print(f"{len(folders)} devices, {len(complaints)} complaints")
    return 1 if complaints or not folders else 0


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: check_device_index.py FOLDER SCHEMA")
    sys.exit(main(*sys.argv[1:]))
