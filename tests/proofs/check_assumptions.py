"""Compares the axioms that the main theorems rest on with allowed_axioms.txt.

check_assumptions.py SOURCE BUILD ALLOWED
"""

import pathlib
import re
import sys


def main():
    source, build, allowed_file = map(pathlib.Path, sys.argv[1:4])
    allowed = {line.strip() for line in allowed_file.read_text().splitlines() if line.strip() and line[0] != "#"}
    output = (build / "print_assumptions.out").read_text()
    asked = re.findall(r'idtac "file (\w+)"', (source / "print_assumptions.v").read_text())
    # One part for each file: its name, then "Closed under the global context" or "Axioms:" and the axioms.
    parts = re.split(r"^file (\w+)$", output, flags=re.M)[1:]
    answered = parts[0::2]
    if answered != asked or not asked:
        sys.exit(f"asked about {asked}, answered {answered}")
    bad = []
    for name, part in zip(answered, parts[1::2]):
        if part.strip() == "Closed under the global context":
            print(f"{name}: no axioms")
            continue
        if not part.strip().startswith("Axioms:"):
            sys.exit(f"{name}: cannot read\n{part}")
        # A name at the start of a line; its type follows a colon there or on the next, indented line.
        axioms = re.findall(r"^([A-Za-z_][\w.']*)(?:\s*:|$)", part.replace("Axioms:", "", 1), flags=re.M)
        print(f"{name}: {', '.join(axioms)}")
        bad += [f"{name} rests on {axiom}" for axiom in axioms if axiom not in allowed]
    if bad:
        sys.exit("\n".join(bad))


if __name__ == "__main__":
    main()
