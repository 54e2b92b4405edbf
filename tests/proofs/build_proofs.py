"""Compiles proofs_notes/coq from clean, one file at a time in the order of _CoqProject.

build_proofs.py COQC SOURCE BUILD

The sources are copied to BUILD first, so that nothing is written beside them. What print_assumptions.v and evaluate.v
print is kept in BUILD/<name>.out for the other tests.
"""

import pathlib
import re
import resource
import shutil
import subprocess
import sys

LIMIT_SECONDS = 180  # processor time for everything, from clean

# A proof that is not one. `Variable`, `Hypothesis` and `Context` are fine inside a section only, which
# Print Assumptions would show otherwise.
FORBIDDEN = r"\b(Admitted|admit|Axiom|Axioms|Parameter|Parameters|Conjecture|give_up|Unset\s+Guard\s+Checking|bypass_check)\b"


def files_of(source):
    """The .v files of _CoqProject, in its order."""
    lines = (source / "_CoqProject").read_text().splitlines()
    return [line for line in lines if line.endswith(".v")]


def without_comments(text):
    previous = None
    while previous != text:
        previous = text
        text = re.sub(r"\(\*(?:(?!\(\*|\*\)).)*\*\)", " ", text, flags=re.S)
    return text


def compile_file(coqc, build, name):
    done = subprocess.run([coqc, "-w", "none", "-R", ".", "Gaugeblock", name], cwd=build, capture_output=True, text=True)
    (build / (name[:-2] + ".out")).write_text(done.stdout)
    return done.returncode == 0, done.stderr


def main():
    coqc, source, build = sys.argv[1], pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3])
    names = files_of(source)
    unlisted = sorted(set(path.name for path in source.glob("*.v")) - set(names))
    if unlisted:
        sys.exit(f"not in _CoqProject: {', '.join(unlisted)}")
    shutil.rmtree(build, ignore_errors=True)
    build.mkdir(parents=True)
    for name in names:
        shutil.copy(source / name, build / name)
        found = re.search(FORBIDDEN, without_comments((source / name).read_text()))
        if found:
            sys.exit(f"{name}: {found.group(0)}")
    used = 0.0
    for name in names:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        ok, message = compile_file(coqc, build, name)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        used += seconds
        print(f"{seconds:6.1f} s  {name}", flush=True)
        if not ok:
            sys.exit(message)
    print(f"{used:6.1f} s  in all, from clean")
    if used > LIMIT_SECONDS:
        sys.exit(f"more than {LIMIT_SECONDS} s")


if __name__ == "__main__":
    main()
