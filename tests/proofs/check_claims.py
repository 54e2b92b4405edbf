"""Checks the claims table of proofs_notes/README.md against the proofs and the code, in both directions.

check_claims.py ROOT BUILD PROGRAM

- ids are unique, every status is one of proved, tested, assumed;
- a proved claim names theorems, each defined in a file that compiled and among those whose axioms are printed;
- the page, the C++ symbol and the test of every row exist;
- every id that the code uses is in the table, and no id of the table is unused;
- no theorem of claims.v belongs to no claim;
- every proved claim has its largest error/bound, on generated problems and on inputs built to be bad, none above 1;
- `gaugeblock list` shows the statuses of the table, and every id that `list` and `judge` print is in it.
"""

import json
import pathlib
import re
import struct
import subprocess
import sys
import tempfile

CODE = ["reference", "gpu", "verify"]
ID = r"(?:recurrence|axial)(?:\.[a-z_]+)+"
# Words that look like ids in messages and are none.
NO_CLAIM = re.compile(r"^(recurrence|axial)\.(input|inputs|operation|attributes|case_text|heads|row|col)\b")
DEFINED = r"^\s*(?:Theorem|Lemma|Corollary|Definition)\s+{}\b"


CLAIM = ["id", "statement", "page", "status", "theorem", "C++", "test"]
FIGURES = ["id", "generated", "built to be bad"]


def rows_of(readme, columns):
    """The rows about claims of the table with these columns."""
    rows, inside = [], False
    for line in readme.read_text().splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if line.startswith("|") and cells[0] == "id":
            inside = cells == columns
        elif inside and re.fullmatch(ID, cells[0]):
            if len(cells) != len(columns):
                sys.exit(f"{cells[0]}: {len(cells)} cells")
            rows.append(dict(zip(columns, cells)))
    return rows


def ids_in_code(root):
    """Ids after `claim:` in a comment and string literals that are one, with where; and all ids mentioned at all."""
    used, mentioned = {}, set()
    for folder in CODE:
        for path in (root / folder).rglob("*"):
            if path.suffix not in (".h", ".cpp", ".cu", ".cuh"):
                continue
            text = path.read_text()
            mentioned.update(re.findall(rf"\b{ID}\b", text))
            for line in text.splitlines():
                marked = line.split("claim:", 1)
                found = re.findall(rf"\b{ID}\b", re.sub(r"claims::\S+", "", marked[1])) if len(marked) == 2 else []
                found += re.findall(rf'"({ID})"', line)
                for identifier in found:
                    if not NO_CLAIM.match(identifier):
                        used.setdefault(identifier, set()).add(str(path.relative_to(root)))
    return used, mentioned


def ids_printed(root, program):
    """(id, status) of everything that `list` prints, and of the bounds of `judge`: computed, and from golden files."""
    def call(*arguments):
        done = subprocess.run([program, *map(str, arguments)], capture_output=True, text=True)
        if done.returncode:
            sys.exit(f"{' '.join(map(str, arguments))}: exit {done.returncode}: {done.stderr}")
        return done.stdout

    printed = {(entry["claim"], entry["claim_status"]) for entry in json.loads(call("list", "--json"))}
    with tempfile.TemporaryDirectory() as folder:
        bare, made = pathlib.Path(folder) / "bare", pathlib.Path(folder) / "made"
        for operation, variant in (("recurrence", "sequential"), ("axial", "unfused")):
            golden = root / "data" / "golden" / f"{operation}-small.safetensors"
            inputs_alone(golden, bare)
            call("run", "--variant", variant, "--input", bare, "--output", made)
            for given in (golden, bare):
                verdict = json.loads(call("judge", "--input", given, "--actual", made, "--json"))
                printed.add((verdict["claim"], verdict["claim_status"]))
                if verdict["claim"] not in call("judge", "--input", given, "--actual", made):
                    sys.exit(f"judge names no claim of {given.name} of {operation}")
    return printed


def inputs_alone(golden, bare):
    """A golden file without its golden values and without the metadata that name a claim."""
    content = golden.read_bytes()
    length = struct.unpack("<Q", content[:8])[0]
    header, data, kept, inputs = json.loads(content[8 : 8 + length]), content[8 + length :], {}, b""
    for name, tensor in header.items():
        if name == "__metadata__":
            kept[name] = {key: value for key, value in tensor.items() if key != "gaugeblock.claim"}
        elif not name.startswith(("expected.", "bound.", "sigma.")):
            first, last = tensor["data_offsets"]
            kept[name] = {**tensor, "data_offsets": [len(inputs), len(inputs) + last - first]}
            inputs += data[first:last]
    text = json.dumps(kept).encode()
    bare.write_bytes(struct.pack("<Q", len(text)) + text + inputs)


def main():
    root, build, program = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), sys.argv[3]
    coq = root / "proofs_notes" / "coq"
    rows = rows_of(root / "proofs_notes" / "README.md", CLAIM)
    wrong = []
    ids = [row["id"] for row in rows]
    wrong += [f"{i}: twice in the table" for i in sorted(set(ids)) if ids.count(i) > 1]
    if len(ids) < 20:
        wrong.append(f"only {len(ids)} claims in the table")

    asked = (coq / "print_assumptions.v").read_text()
    claimed = set()
    for row in rows:
        name, status = row["id"], row["status"]
        theorems = re.findall(r"\b(\w+)\.(\w+)\b", row["theorem"])
        claimed.update(theorems)
        if status not in ("proved", "tested", "assumed"):
            wrong.append(f"{name}: status {status}")
        if (status == "proved") != bool(theorems):
            wrong.append(f"{name}: {status}, with {len(theorems)} theorems")
        for file, theorem in theorems:
            source = coq / f"{file}.v"
            if not source.exists() or not re.search(DEFINED.format(theorem), source.read_text(), flags=re.M):
                wrong.append(f"{name}: no theorem {file}.{theorem}")
            if not (build / f"{file}.vo").exists():
                wrong.append(f"{name}: {file}.v did not compile")
            if not re.search(rf"@{file}\.{theorem}\b", asked):
                wrong.append(f"{name}: the axioms of {file}.{theorem} are not printed")
        page = re.fullmatch(r"\[[^\]]+\]\(([^)#]+)\)", row["page"])
        if not page or not (root / "proofs_notes" / page.group(1)).is_file():
            wrong.append(f"{name}: no page {row['page']}")
        path, _, symbol = row["C++"].partition("#")
        if not (root / path).exists() or not re.search(rf"\b{symbol}\b", (root / path).read_text()):
            wrong.append(f"{name}: no {symbol} in {path}")
        if row["test"].startswith("proofs."):
            known = row["test"] in (root / "tests" / "proofs" / "CMakeLists.txt").read_text()
        else:
            known = (root / "tests" / row["test"]).is_dir()
        if not known:
            wrong.append(f"{name}: no test {row['test']}")

    figures = rows_of(root / "proofs_notes" / "README.md", FIGURES)
    for row in figures:
        if row["id"] not in ids:
            wrong.append(f"{row['id']}: has figures, but is no claim")
        for column in FIGURES[1:]:
            if not re.fullmatch(r"0\.\d+|1\.0+", row[column]) or not 0 < float(row[column]) <= 1:
                wrong.append(f"{row['id']}: {column}: expected a ratio in (0, 1], found {row[column]}")
    for row in rows:
        if row["status"] == "proved" and [figure["id"] for figure in figures].count(row["id"]) != 1:
            wrong.append(f"{row['id']}: no figures; the program worst_ratio (tests/bench) gives them")

    used, mentioned = ids_in_code(root)
    for identifier, where in sorted(used.items()):
        if identifier not in ids and not any(i.startswith(identifier + ".") for i in ids):
            wrong.append(f"{identifier}: used in {', '.join(sorted(where))}, not in the table")
    for identifier in ids:
        if not any(identifier == u or identifier.startswith(u + ".") for u in mentioned):
            wrong.append(f"{identifier}: used nowhere")

    for theorem in re.findall(r"^(?:Theorem|Definition)\s+((?:recurrence|axial)_\w+)", (coq / "claims.v").read_text(), flags=re.M):
        if ("claims", theorem) not in claimed:
            wrong.append(f"claims.{theorem}: belongs to no claim")

    registry = root / "verify" / "variants" / "registry.cpp"
    listed = re.findall(rf'\{{"({ID})",\s*"(proved|tested|assumed)"\}}', registry.read_text())
    if not listed:
        wrong.append("registry.cpp: no statuses found")
    for identifier, status in listed:
        expected = {row["status"] for row in rows if row["id"] == identifier or row["id"].startswith(identifier + ".")}
        if expected != {status}:
            wrong.append(f"{identifier}: {status} in registry.cpp, {' and '.join(sorted(expected)) or 'absent'} in the table")

    printed = ids_printed(root, program)
    for identifier, status in sorted(printed):
        expected = {row["status"] for row in rows if row["id"] == identifier or row["id"].startswith(identifier + ".")}
        if expected != {status}:
            wrong.append(f"the program prints {identifier} ({status}), {' and '.join(sorted(expected)) or 'absent'} in the table")

    print(f"{len(rows)} claims, {len(claimed)} theorems, {len(used)} ids in the code, {len(printed)} printed")
    if wrong:
        sys.exit("\n".join(wrong))


if __name__ == "__main__":
    main()
