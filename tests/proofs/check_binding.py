"""Compares the C++ functions behind the claims with the values that Coq computed from the theorems' own constants.

check_binding.py BUILD PROGRAM

Each line of evaluate.out that names a C++ function is asked of PROGRAM (claims_grid.cpp). Counts must be equal; other
values agree to a few roundings of float64.
"""

import fractions
import pathlib
import re
import subprocess
import sys

# Formulas of the proofs that C++ has in no function of its own: any_order is part of any_form, and the bound from a
# count is one expression of the oracle.
NOT_IN_CPP = {"recurrence.any_order.output", "recurrence.any_order.state"}
TOLERANCE = fractions.Fraction(1, 2**48)


def main():
    build, program = pathlib.Path(sys.argv[1]), sys.argv[2]
    lines = re.findall(r'"([^"]+)"', (build / "evaluate.out").read_text())
    if len(lines) < 1000:
        sys.exit(f"only {len(lines)} lines in evaluate.out")
    questions, answers = [], []
    for line in lines:
        question, values = line.split(" =", 1)
        kind, identifier, *arguments = question.split()
        as_float = [repr(float(fractions.Fraction(argument))) for argument in arguments]
        questions.append(" ".join([kind, identifier, *as_float]))
        answers.append([fractions.Fraction(value) for value in values.split()])
    done = subprocess.run([program], input="\n".join(questions) + "\n", capture_output=True, text=True, check=True)
    replies = done.stdout.splitlines()
    if len(replies) != len(lines):
        sys.exit(f"{len(lines)} questions, {len(replies)} replies")
    wrong, compared = [], 0
    for line, expected, reply in zip(lines, answers, replies):
        kind, identifier = line.split()[:2]
        if reply == "unknown":
            if kind != "bound" and identifier not in NOT_IN_CPP:
                wrong.append(f"{identifier}: no C++ function")
            continue
        actual = [fractions.Fraction(float(value)) for value in reply.split()]
        compared += 1
        exact = kind in ("count", "roundings") and all(value.denominator == 1 for value in expected)
        limit = 0 if exact else TOLERANCE
        if len(actual) != len(expected) or any(abs(a - e) > limit * abs(e) for a, e in zip(actual, expected)):
            wrong.append(f"{line}   but C++ has {reply}")
    print(f"{compared} values compared")
    if wrong:
        shown = wrong[:20]
        sys.exit("\n".join(shown) + (f"\n… and {len(wrong) - 20} more" if len(wrong) > 20 else ""))


if __name__ == "__main__":
    main()
