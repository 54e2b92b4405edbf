"""check_refusals.py [--megabytes N] [--seconds S] CORPUS COMMAND...: runs COMMAND on every file of the corpus.

{} in COMMAND stands for the file. A file named bad-… must be refused: exit code 2, exactly one line on stderr, nothing on
stdout, within the processor time and the memory. A file named good-… must not be: exit code 0, 1 or 4. Files too large to be stored are
made, tried and deleted.
"""

import argparse
import os
import pathlib
import resource
import subprocess
import sys
import tempfile

import make_corpus


def run(command, path):
    """Exit code, stdout, stderr, seconds of processor time (a busy machine does not count) and peak memory in bytes."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        child = subprocess.Popen([part.replace("{}", str(path)) for part in command], stdin=subprocess.DEVNULL, stdout=out, stderr=err)
        _, status, usage = os.wait4(child.pid, 0)
        seconds = usage.ru_utime + usage.ru_stime
        child.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        err.seek(0)
        return child.returncode, out.read(), err.read(), seconds, usage.ru_maxrss * 1024


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--megabytes", type=float, default=100)
    parser.add_argument("--seconds", type=float, default=1)
    parser.add_argument("corpus")
    parser.add_argument("command", nargs=argparse.REMAINDER)
    options = parser.parse_args()

    complaints = []
    slowest, largest, count = (0, ""), (0, ""), 0
    with tempfile.TemporaryDirectory() as folder:
        stored = sorted(path for path in pathlib.Path(options.corpus).iterdir())
        for paths in (stored, make_corpus.large_files(folder)):
            for path in paths:
                count += 1
                code, out, err, seconds, memory = run(options.command, path)
                slowest = max(slowest, (seconds, path.name))
                largest = max(largest, (memory, path.name))
                what = []
                if path.name.startswith("bad-"):
                    if code != 2:
                        what.append(f"exit code {code}, expected 2")
                    if err.count(b"\n") != 1 or not err.endswith(b"\n") or len(err) < 20:
                        what.append(f"stderr {err[:300]!r}, expected one line")
                    if path.name.encode() not in err:
                        what.append(f"stderr {err[:300]!r}, expected the name of the file in it")
                    if any(byte < 32 and byte != 10 for byte in err):
                        what.append(f"stderr {err[:300]!r}, expected no control characters")
                    if out:
                        what.append(f"stdout {out[:300]!r}, expected nothing")
                elif code not in (0, 1, 4):
                    what.append(f"exit code {code}, expected the file to be taken: {err[:300]!r}")
                if seconds > options.seconds:
                    what.append(f"{seconds:.2f} s, expected at most {options.seconds} s")
                if memory > options.megabytes * 1e6:
                    what.append(f"{memory / 1e6:.0f} MB, expected at most {options.megabytes} MB")
                complaints += [f"{path.name}: {one}" for one in what]
    for complaint in complaints:
        print(complaint, file=sys.stderr)
    own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(f"slowest {slowest[0]:.3f} s ({slowest[1]}); largest {largest[0] / 1e6:.0f} MB ({largest[1]}), of which a child has up to {own / 1e6:.0f} MB from this script")
    print(f"{count} files, {len(complaints)} complaints")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
