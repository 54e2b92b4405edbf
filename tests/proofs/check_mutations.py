"""Seeds errors into statements, constants and C++, one at a time; each must be noticed.

check_mutations.py COQC CXX ROOT BUILD WORK

BUILD holds the compiled proofs (build_proofs.py). A statement or a constant is changed in a copy and compiled again with
the files that follow it until one fails; if all compile, the values that evaluate.v prints must have changed. A change in
the C++ constants must change what check_binding.py says.
"""

import pathlib
import re
import shutil
import subprocess
import sys

import build_proofs

# kind, file, text that occurs once (a regular expression), replacement
STATEMENTS = [
    ("recurrence_counts.v", r"holds \(fun a => \(2 \* a \+ 3\)%nat\) \(2 \* t \+ 3\) t y",
     "holds (fun a => (2 * a + 2)%nat) (2 * t + 3) t y"),
    ("output_counts.v", r"attention 0 t s0 y ->\s+holds_out \(fun a => \(a \+ t \+ D \+ 2\)%nat\)",
     "attention 0 t s0 y -> holds_out (fun a => (a + t + D + 1)%nat)"),
    ("prefix_product.v", r"\(1 <= j <= L\)%nat -> 3 / 2 \* tiny <= Rabs \(G c j\)",
     "(1 <= j <= L)%nat -> 1 / 2 * tiny <= Rabs (G c j)"),
    ("binary32.v", r"Definition eta32 := bpow radix2 \(-150\)", "Definition eta32 := bpow radix2 (-151)"),
    ("linear.v", r"gamma \(S n\) \* \(sumn \(fun i => Rabs \(W i\) \* Rabs \(xh i\)\) n \+ Rabs b\) \+ \(2 \* INR n \+ 1\) \* eta\.",
     "gamma n * (sumn (fun i => Rabs (W i) * Rabs (xh i)) n + Rabs b) + (2 * INR n + 1) * eta."),
    ("layer_norm.v", r"Definition two_pass_e_v := gamma \(n \+ 5\)", "Definition two_pass_e_v := gamma (n + 4)"),
    ("layer_norm.v", r"\+ gamma 2 \* folded_size i", "+ gamma 1 * folded_size i"),
    ("layer_norm.v", r"\+ 8 \* eta \* any_scale_size i\.", "+ 4 * eta * any_scale_size i."),
    ("attention.v", r"Definition logit_lost d \(qa ka : nat -> R\) := 4 \* INR d \* eta \+ 2 \* eta",
     "Definition logit_lost d (qa ka : nat -> R) := 4 * INR d * eta + 1 / 2 * eta"),
    ("axial_block.v", r"Definition early_bias := u \*", "Definition early_bias := u / 2 *"),
    ("output_counts.v", r"holds_out \(fun a => \(D \+ \(a \+ a / C \+ C \+ 3\)\)%nat\)",
     "holds_out (fun a => (D + (a + a / C + C + 2))%nat)"),
]
CONSTANTS = [
    ("claims.v", r"sequential_output \(t D : nat\) := Count 2 \(qn D \+ 3\)", "sequential_output (t D : nat) := Count 2 (qn D + 2)"),
    ("claims.v", r"masked_attention_state \(t : nat\) := Count 1 \(qn t \+ 2\)",
     "masked_attention_state (t : nat) := Count 1 (qn t + 1)"),
    ("claims.v", r"Count \(1 \+ / C\) \(2 \* C \+ qn D \+ 4\)", "Count (1 + / C) (C + qn D + 4)"),
    ("claims.v", r"scan_output \(t D : nat\) := Count 1 \(2 \* qn", "scan_output (t D : nat) := Count 1 (1 * qn"),
    ("claims.v", r"any_form_output \(t D : nat\) := Count 0 \(3 \* qn t \+ qn D \+ 4\)",
     "any_form_output (t D : nat) := Count 0 (3 * qn t + qn D + 5)"),
    ("claims.v", r"Definition folded_roundings := 2%nat", "Definition folded_roundings := 1%nat"),
    ("claims.v", r"qn D \* qn \(3 \* t \+ D \+ 6\) \* \(Gam \* Gam\)", "qn D * qn (3 * t + D + 6) * Gam"),
]
CPP = [
    ("claims.h", r"static_cast<double>\(dot \+ 3\)", "static_cast<double>(dot + 2)"),
    ("claims.h", r"static_cast<double>\(t \+ dot \+ 2\)", "static_cast<double>(t + dot + 1)"),
    ("claims.h", r"(chunked_state\(.*?\{.*?return \{)1 \+ 1 / c", r"\g<1>1"),
    ("claims.h", r"scan_state\(Index t\) \{\s*return \{1, 2 \*", "scan_state(Index t) { return {1, 1 *"),
    ("claims.h", r"window \* window", "window"),
    ("axial_claims.h", r"return d \+ 3", "return d + 2"),
    ("axial_claims.h", r"folded_roundings = 2", "folded_roundings = 1"),
]


def mutated(text, pattern, replacement, where):
    result, count = re.subn(pattern, replacement, text, flags=re.S)
    if count != 1:
        sys.exit(f"{where}: the text to change occurs {count} times: {pattern}")
    return result


def coq_mutant_survives(coqc, source, build, work, name, pattern, replacement):
    """None when noticed, else why not."""
    shutil.rmtree(work, ignore_errors=True)
    shutil.copytree(build, work)
    changed = mutated((source / name).read_text(), pattern, replacement, name)
    (work / name).write_text(changed)
    names = build_proofs.files_of(source)
    for following in names[names.index(name):]:
        if following == "print_assumptions.v":
            continue
        ok, _ = build_proofs.compile_file(coqc, work, following)
        if not ok:
            return None
    if (work / "evaluate.out").read_text() != (build / "evaluate.out").read_text():
        return None
    return "everything compiles, the values are the same"


def binding(build, cxx, root, include, program):
    compiled = subprocess.run([cxx, "-std=c++20", "-O0", f"-I{include}", str(root / "tests/proofs/claims_grid.cpp"), "-o", str(program)],
                              capture_output=True, text=True)
    if compiled.returncode:
        return "does not compile: " + compiled.stderr
    here = pathlib.Path(__file__).parent
    done = subprocess.run([sys.executable, str(here / "check_binding.py"), str(build), str(program)], capture_output=True, text=True)
    return done.stdout + done.stderr


def main():
    coqc, cxx = sys.argv[1:3]
    root, build, work = map(pathlib.Path, sys.argv[3:6])
    source = root / "proofs_notes" / "coq"
    survivors = []
    total = 0
    for kind, mutations in (("statement", STATEMENTS), ("constant", CONSTANTS)):
        for name, pattern, replacement in mutations:
            total += 1
            why = coq_mutant_survives(coqc, source, build, work / "coq", name, pattern, replacement)
            print(f"{kind}: {name}: {replacement}: {why or 'noticed'}", flush=True)
            if why:
                survivors.append(replacement)

    include = work / "include" / "gaugeblock"
    shutil.rmtree(work / "include", ignore_errors=True)
    bounds = include / "verify" / "bounds"
    bounds.mkdir(parents=True)
    (include / "reference").symlink_to(root / "reference")
    originals = {name: (root / "verify" / "bounds" / name).read_text() for name in ("claims.h", "axial_claims.h")}
    for name, text in originals.items():
        (bounds / name).write_text(text)
    unchanged = binding(build, cxx, root, work / "include", work / "grid")
    if "does not compile" in unchanged:
        sys.exit(unchanged)
    for name, pattern, replacement in CPP:
        total += 1
        (bounds / name).write_text(mutated(originals[name], pattern, replacement, name))
        result = binding(build, cxx, root, work / "include", work / "grid")
        (bounds / name).write_text(originals[name])
        noticed = result != unchanged and "does not compile" not in result
        print(f"C++: {name}: {replacement}: {'noticed' if noticed else result}", flush=True)
        if not noticed:
            survivors.append(replacement)
    print(f"{total - len(survivors)} of {total} noticed")
    sys.exit(1 if survivors else 0)


if __name__ == "__main__":
    main()
