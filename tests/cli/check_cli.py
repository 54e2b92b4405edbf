"""The program's contract: exit codes, one clear line for bad input, JSON keys. Usage: check_cli.py PROGRAM"""
import json
import os
import pathlib
import signal
import struct
import subprocess
import sys
import tempfile
import time

PROGRAM = sys.argv[1]
failures = []


def run(*arguments):
    return subprocess.run([PROGRAM, *arguments], capture_output=True, text=True, timeout=120)


def expect(condition, what):
    if not condition:
        failures.append(what)


def refused(arguments, *words, code=2):
    """The command exits with `code`, prints nothing on stdout and one line on stderr that has all the words."""
    done = run(*arguments)
    shown = " ".join(arguments)
    expect(done.returncode == code, f"{shown}: exit {done.returncode}, expected {code}; stderr: {done.stderr!r}")
    expect(done.stdout == "", f"{shown}: stdout is not empty: {done.stdout[:200]!r}")
    expect(done.stderr.count("\n") == 1, f"{shown}: stderr is not one line: {done.stderr!r}")
    for word in words:
        expect(word in done.stderr, f"{shown}: '{word}' is not in {done.stderr!r}")


def write_file(path, tensors, metadata):
    """A safetensors file of float32: {name: (shape, values)}."""
    header, data = {"__metadata__": metadata}, b""
    for name, (shape, values) in tensors.items():
        piece = struct.pack(f"<{len(values)}f", *values)
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [len(data), len(data) + len(piece)]}
        data += piece
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


# Bad usage.
refused([], "subcommand")
for word in ("frobnicate", "--frobnicate"):
    refused([word], "command", word, "verify")
refused(["verify", "--op", "attention"], "attention", "recurrence")
refused(["verify", "--variant", "no_such_variant"], "no_such_variant", "gaugeblock list")
refused(["verify", "--backend", "tpu"], "tpu", "simt")
if run("verify", "--backend", "cuda", "--cases", "1").returncode != 0:  # no GPU here
    refused(["verify", "--backend", "cuda", "--cases", "1"], "backend cuda", code=3)
    refused(["bench", "--backend", "cuda"], "backend cuda", code=3)
refused(["bench", "--backend", "simt"], "--backend", "simt", "cpu", "cuda")
refused(["bench", "--case", "recurrence:gaet=one"], "gaet", "gate")
refused(["verify", "--cases", "many"], "many")
refused(["verify", "--cases", "-1"], "--cases", "-1")
refused(["verify", "--cases", "99999999999999999999999"], "--cases", "out of range")
refused(["verify", "--seed", "18446744073709551616"], "--seed", "out of range")
for option, value in (("--cases", "5"), ("--time", "1"), ("--seed", "7")):
    refused(["verify", "--case", "recurrence:T=1", option, value], "--case", option)
refused(["list", "--explain", "--backend", "gpu"], "--explain", "gpu")
refused(["bench", "--op", "axial", "--case", "recurrence:T=1"], "axial", "recurrence")
for command in ("bench", "verify"):
    refused([command, "--variant", "unfused", "--case", "recurrence:T=1"], "unfused", "recurrence")
    refused([command, "--variant", "unfused", "--case", "axial:W=1", "--case", "recurrence:T=1"], "unfused", "recurrence")
done = run("verify", "--case", "recurrence:T=1", "--case", "axial:W=1")
expect(done.returncode == 0 and "sequential" in done.stdout and "unfused" in done.stdout, f"cases of both operations: {done}")
refused(["verify", "--cases", "1", "--time", "1"], "--cases", "--time")
refused(["verify", "--time", "0"], "--time")
for option, most in (("--jobs", "1024"), ("--repeats", "1000000")):
    for value in ("0", "-1", "0x10", "1.5", "", str(int(most) + 1)):
        refused(["verify", option, value], option, most, f"'{value}'")
done = run("verify", "--case", "recurrence:T=1", "--jobs", "09", "--repeats", "08")
expect(done.returncode == 0, f"numbers with a leading zero are decimal: {done}")
for backend in ("cpu", "simt"):
    done = run("verify", "--backend", backend, "--repeats", "3", "--case", "recurrence:T=2")
    expect(done.returncode == 0, f"repeats on {backend}: {done}")
refused(["mutants", "--cases", "0"], "--cases")
refused(["mutants", "--jobs", "1025"], "--jobs", "1024")
refused(["run", "--variant", "sequential"], "--input")
refused(["judge", "--input", "/nonexistent/file.safetensors", "--actual", "x"], "/nonexistent/file.safetensors")

# Bad cases.
for text, *words in [
    ("recurrence:B=2,T=x,H=1", "T", "x"),
    ("recurrence:B=0", "B", "0"),
    ("recurrence:T=-1", "T", "-1"),
    ("recurrence:B=99999999999999999999", "B"),
    ("recurrence:B=9223372036854775807,T=9223372036854775807",),
    ("recurrence:B=1000000,T=1000000,H=1000000",),
    ("axial:B=1,H=1,W=1000000,D=8", "scores", "1000000", "memory"),
    ("recurrence:gaet=one", "gaet", "gate"),
    ("recurrence:gate=nearone", "nearone", "near_one"),
    ("recurrence:gate=const:x", "const"),
    ("recurrence:T=1,T=2", "T"),
    ("attention:B=1", "attention"),
    ("axial:D=5,heads=2", "heads"),
    ("axial:W=0", "W"),
    ("", ),
]:
    refused(["verify", "--case", text], *words)
refused(["verify", "--op", "axial", "--case", "recurrence:T=1"], "axial", "recurrence")

# A campaign: exit 0, stable keys, the same numbers on every run and for any number of jobs.
keys = {"cases", "pass", "suspect", "fail", "vacuous", "unsupported", "error"}
reports = []
for jobs in ("1", "2", "2"):
    done = run("verify", "--op", "recurrence", "--seed", "3", "--cases", "40", "--json", "--jobs", jobs)
    expect(done.returncode == 0, f"a small campaign exits with {done.returncode}: {done.stderr}")
    expect(done.stderr == "", f"progress is shown though stderr is piped: {done.stderr[:200]!r}")
    reports.append(json.loads(done.stdout))
expect(reports[0] == reports[1] == reports[2], "the same campaign gave different reports")
expect(keys <= set(reports[0]["summary"]), "keys of summary")
expect(reports[0]["summary"]["cases"] == 40, "number of cases")
for variant in reports[0]["variants"]:
    wanted = {"name", "op", "backend", "worst_ratio", "worst_likely_ratio", "worst_case", "worst_likely_case"} | keys - {"cases"}
    expect(wanted <= set(variant), f"keys of {variant['name']}")
    expect(sum(variant[k] for k in keys - {"cases"}) == 40, f"verdicts of {variant['name']}")
    # The worst cases can be repeated by their texts and give the same ratios.
    for ratio, case in (("worst_ratio", "worst_case"), ("worst_likely_ratio", "worst_likely_case")):
        again = run("verify", "--variant", variant["name"], "--case", variant[case], "--json")
        expect(again.returncode == 0, f"{variant[case]}: exit {again.returncode}")
        expect(json.loads(again.stdout)["variants"][0][ratio] == variant[ratio],
               f"{variant['name']}: the worst case repeated gives another {ratio}")

listed = json.loads(run("list", "--json").stdout)
for entry in listed:
    expect({"name", "op", "backends", "summary", "claim", "claim_status", "arithmetic"} <= set(entry), f"keys of list: {entry}")
    expect(entry["claim_status"] in ("proved", "tested", "assumed"), f"claim_status of {entry['name']}")
expect({"sequential", "materialized", "masked_attention", "prefix_product", "prefix_product_segmented", "chunked", "scan"}
       <= {entry["name"] for entry in listed if entry["op"] == "recurrence"}, "the forms of the recurrence")

# Times as ratios in one run; what declines is listed with its reason.
case = "recurrence:T=3,K=2,V=2,gate=const:0,seed=1"
done = run("bench", "--op", "recurrence", "--variant", "*[ex]*", "--case", case, "--json")
expect(done.returncode == 0 and done.stderr == "", f"bench: exit {done.returncode}, {done.stderr!r}")
rows = {row["name"]: row for row in json.loads(done.stdout)["benchmarks"]}
done = run("bench", "--variant", "prefix_product", "--case", case)
expect(done.returncode == 4 and "declined" in done.stdout, f"bench of nothing but a declined case: exit {done.returncode}")
done = run("bench", "--variant", "sequential", "--case", "recurrence:T=30,K=2,V=2,gate=const:1e30")
expect(done.returncode == 4 and "wrong" not in done.stdout, f"bench where the definition overflows: {done.returncode}, {done.stdout}")
expect(rows["prefix_product"].get("not_run", "").startswith("declined") and "median_us" not in rows["prefix_product"],
       f"bench of a declined case: {rows['prefix_product']}")
expect(rows["sequential"]["error"] == rows["sequential"]["float32_error"] < 1e-6, f"bench: error {rows['sequential']}")
expect(rows["sequential"]["median_us"] > 0 and min(row["ratio"] for row in rows.values() if "ratio" in row) == 1,
       f"bench: {rows}")

# A case every variant declines: nothing to judge.
done = run("verify", "--variant", "prefix_product", "--case", "recurrence:T=3,gate=const:0,seed=1")
expect(done.returncode == 4 and "nothing was judged" in done.stderr and done.stderr.count("\n") == 1,
       f"a case that is declined: exit {done.returncode}, {done.stderr!r}")

with tempfile.TemporaryDirectory() as folder:
    report = pathlib.Path(folder) / "report"
    done = run("verify", "--op", "recurrence", "--cases", "3", "--report", str(report))
    expect(done.returncode == 0 and (report / "report.json").exists() and (report / "report.txt").exists(), "--report")
    expect((report / "report.txt").read_text() == done.stdout, "report.txt is what was printed")
    blocked = pathlib.Path(folder) / "file"
    blocked.write_text("")
    refused(["verify", "--op", "recurrence", "--cases", "1", "--report", str(blocked / "x")], str(blocked))

    # A report that cannot be written costs neither the campaign nor its verdict.
    (report / "report.json").unlink()
    (report / "report.json").mkdir()
    done = run("verify", "--op", "recurrence", "--cases", "3", "--report", str(report))
    expect(done.returncode == 2 and "3 cases" in done.stdout and str(report) in done.stderr, f"--report in the way: {done}")

# What is printed arrives, or the program says that it does not; nobody reading stderr is no failure.
if pathlib.Path("/dev/full").exists():
    for arguments in (["verify", "--op", "recurrence", "--cases", "2"], ["list", "--json"], ["bench", "--case", "recurrence:T=1"]):
        with open("/dev/full", "w") as full:
            done = subprocess.run([PROGRAM, *arguments], stdout=full, stderr=subprocess.PIPE, text=True, timeout=120)
        expect(done.returncode == 3 and done.stderr.count("\n") == 1, f"{arguments} on a full disk: {done}")
    with tempfile.TemporaryDirectory() as folder, open("/dev/full", "w") as full:
        report = pathlib.Path(folder) / "report"
        done = subprocess.run([PROGRAM, "verify", "--cases", "60", "--json", "--report", str(report)], stdout=full,
                              stderr=subprocess.PIPE, text=True, timeout=120)
        expect(done.returncode == 3 and (report / "report.json").exists(), f"a report beside a full disk: {done}")
    for arguments, code in ((["list", "--frobnicate"], 2), (["verify", "--cases", "1", "--backend", "all"], 0)):
        with open("/dev/full", "w") as full:
            done = subprocess.run([PROGRAM, *arguments], stdout=subprocess.DEVNULL, stderr=full, timeout=120)
        expect(done.returncode == code, f"{arguments} with stderr on a full disk: exit {done.returncode}")

# Files: what cannot be judged is none that passed, what is not asked for is refused, and inputs are kept.
with tempfile.TemporaryDirectory() as folder:
    folder = pathlib.Path(folder)
    given, actual = folder / "given", folder / "actual"
    recurrence = {name: ([1, 2, 1, 1], [1, 2]) for name in "qkv"} | {name: ([1, 2, 1], [0.5, 0.5]) for name in ("gate", "beta")}
    metadata = {"gaugeblock.format": "1", "gaugeblock.op": "recurrence", "gaugeblock.gate_space": "linear"}
    write_file(given, recurrence, metadata)
    before = given.read_bytes()
    for same in (str(given), os.path.join(str(folder), ".", "given")):
        refused(["run", "--variant", "sequential", "--input", str(given), "--output", same], "--output", "given")
    expect(given.read_bytes() == before, "a refused run changed its input")
    done = run("run", "--variant", "sequential", "--input", str(given), "--output", str(actual))
    expect(done.returncode == 0, f"run: {done}")
    expect(run("judge", "--input", str(given), "--actual", str(actual)).returncode == 0, "judge of what was run")
    write_file(given, recurrence | {"q": ([1, 2, 1, 1], [float("nan")] * 2)}, metadata)
    done = run("judge", "--input", str(given), "--actual", str(actual))
    expect(done.returncode == 4 and done.stdout.startswith("vacuous") and "of y" in done.stdout, f"y without any true value: {done}")
    expect("  final_state[" in done.stdout, f"judge points at an element that nobody could judge: {done.stdout}")
    golden = pathlib.Path(__file__).parents[2] / "data" / "golden" / "axial-row-pass.safetensors"
    write_file(actual, {"y": ([1], [0]), "row": ([1], [0])}, {})
    refused(["judge", "--input", str(golden), "--actual", str(actual)], "row", "passes")
    (folder / "index.json").mkdir()
    refused(["golden", "--check", str(folder)], "index.json", "folder")

# An interrupted campaign keeps what it has judged.
with tempfile.TemporaryDirectory() as folder:
    for number in (signal.SIGINT, signal.SIGTERM):
        report = pathlib.Path(folder) / str(int(number))
        process = subprocess.Popen([PROGRAM, "verify", "--op", "recurrence", "--cases", "10000000", "--jobs", "2", "--report",
                                    str(report)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        while process.poll() is None and not report.exists():
            time.sleep(0.01)
        time.sleep(0.5)
        process.send_signal(number)
        out, err = process.communicate(timeout=120)
        expect(process.returncode == 3, f"{number.name}: exit {process.returncode}, {err!r}")
        summary = json.loads((report / "report.json").read_text())["summary"]
        expect(summary["interrupted"] is True and summary["pass"] > 0, f"{number.name}: {summary}")
        expect(err == f"gaugeblock: interrupted after {summary['cases']} cases: the report is of these\n", f"{number.name}: {err!r}")
        expect("Interrupted" in out and (report / "report.txt").read_text() == out, f"{number.name}: the table")

for failure in failures:
    print("FAILED:", failure)
print(f"{len(failures)} failures")
sys.exit(1 if failures else 0)
