"""refresh_device_data.py PROGRAM FOLDER: what every CUDA variant gives on this machine's GPU, for data/device.

    python3 tests/device/refresh_device_data.py build/cuda/verify/gaugeblock data/device/nvidia-h200

Judges every variant on generated problems (`gaugeblock verify --backend cuda`, --seconds for each operation; or takes the
reports of campaigns that this very program has run here, by --report), and keeps its outputs for a dozen small golden cases:
FOLDER/CASE/VARIANT.safetensors, which `gaugeblock judge --input data/golden/CASE.safetensors --actual` takes. FOLDER/index.json
says the rest; data/schema/device-index.schema.json explains it. Whatever the folder held before is replaced.
"""

import argparse
import concurrent.futures
import datetime
import hashlib
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

GOLDEN = pathlib.Path(__file__).resolve().parents[2] / "data" / "golden"
# Small, and each a path of its own through some kernel: tails, no steps, several warps a column, vectors that fit and do not, an
# initial state; short and uneven axes, several heads, one token, both passes and each by itself, the quoted size of one pass.
CASES = {
    "recurrence": [
        "recurrence-gate-order",
        "recurrence-ragged-17",
        "recurrence-channels-24-5",
        "recurrence-channels-33-48",
        "recurrence-negative",
        "recurrence-no-steps",
        "recurrence-tail-65",
        "recurrence-integers",
    ],
    "axial": [
        "axial-axis-swap",
        "axial-head-merge",
        "axial-one-token",
        "axial-short-2-9",
        "axial-logits-200",
        "axial-short-33",
        "axial-column-pass",
    ],
}
COUNTS = ("cases", "pass", "suspect", "fail", "vacuous", "unsupported", "error")
JUDGED, DECLINED = 0, 4


def call(*command, codes=(0,)):
    result = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    if result.returncode not in codes:
        sys.exit(f"{' '.join(map(str, command))}: exit code {result.returncode}, expected one of {codes}\n{result.stderr}{result.stdout[-2000:]}")
    return result


def device():
    """The GPU that CUDA programs get on this machine."""
    lines = call("nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader").stdout.splitlines()
    name, driver = (part.strip() for part in lines[0].split(","))
    return {"gpu": name, "driver": driver}


def campaigns(program, arguments):
    """Reports as `verify --json` prints them."""
    if arguments.report:
        return [json.loads(path.read_text(encoding="utf-8")) for path in arguments.report]
    reports = []
    for op in CASES:
        command = [program, "verify", "--op", op, "--backend", "cuda", "--seed", arguments.seed, "--time", arguments.seconds, "--json"]
        reports.append(json.loads(call(*command).stdout))
    return reports


def judged(variant, reports):
    """The sums over all reports of what they say of a variant."""
    counts = dict.fromkeys(COUNTS, 0)
    worst = {"worst_ratio": 0, "worst_likely_ratio": 0, "worst_case": ""}
    for report in reports:
        for entry in report["variants"]:
            if (entry["op"], entry["name"], entry["backend"]) != (variant["op"], variant["name"], "cuda"):
                continue
            if entry["source_digest"] != variant["source_digest"]:
                sys.exit(f"{variant['name']}: a report is of another source than PROGRAM: run the campaign again")
            for key in COUNTS:
                counts[key] += entry[key]
            if entry["worst_ratio"] >= worst["worst_ratio"]:
                worst["worst_ratio"], worst["worst_case"] = entry["worst_ratio"], entry["worst_case"]
            worst["worst_likely_ratio"] = max(worst["worst_likely_ratio"], entry["worst_likely_ratio"])
    if counts["pass"] == 0 or counts["fail"] + counts["suspect"] + counts["error"] > 0:
        sys.exit(f"{variant['name']}: expected passes and nothing worse, found {counts}")
    return counts | worst


def run(program, golden, variant, case, place):
    """Runs the variant on the case; what it declined with, or None."""
    output = place / case / f"{variant['name']}.safetensors"
    command = [program, "run", "--variant", variant["name"], "--backend", "cuda", "--input", golden / f"{case}.safetensors", "--output", output]
    result = call(*command, codes=(JUDGED, DECLINED))
    return result.stderr.strip().removeprefix("gaugeblock: ") if result.returncode == DECLINED else None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", type=pathlib.Path)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--seconds", type=int, default=60, help="of the campaign of each operation (60)")
    parser.add_argument("--seed", type=int, default=1, help="of the campaigns (1)")
    parser.add_argument("--report", type=pathlib.Path, action="append", help="a report.json instead of the campaigns")
    parser.add_argument("--golden", type=pathlib.Path, default=GOLDEN, help="folder of the golden files (data/golden)")
    arguments = parser.parse_args()
    program, folder = arguments.program.resolve(), arguments.folder
    if folder.exists() and any(folder.iterdir()) and not (folder / "index.json").exists():
        sys.exit(f"{folder}: expected a folder of device data, or none; found other files")

    index = {"format": "1", "date": datetime.datetime.now(datetime.timezone.utc).date().isoformat(), "device": device()}
    variants = json.loads(call(program, "list", "--backend", "cuda", "--json").stdout)
    reports = campaigns(program, arguments)
    index["campaigns"] = [{key: report["summary"][key] for key in ("seed", "cases")} for report in reports]
    index["variants"] = []
    with tempfile.TemporaryDirectory() as temporary, concurrent.futures.ThreadPoolExecutor(8) as pool:
        place = pathlib.Path(temporary)
        for case in sum(CASES.values(), []):
            (place / case).mkdir()
        tasks = [(variant, case) for variant in variants for case in CASES[variant["op"]]]
        runs = {(v["op"], v["name"], case): pool.submit(run, program, arguments.golden, v, case, place) for v, case in tasks}
        for variant in variants:
            outputs, declined = {}, {}
            for case in CASES[variant["op"]]:
                reason = runs[variant["op"], variant["name"], case].result()
                if reason is not None:
                    declined[case] = reason
                    continue
                output = place / case / f"{variant['name']}.safetensors"
                outputs[case] = hashlib.sha256(output.read_bytes()).hexdigest()
            facts = {key: variant[key] for key in ("op", "name", "source_digest", "compiler")}
            index["variants"].append(facts | judged(variant, reports) | {"outputs": outputs, "declined": declined})
            if not outputs:
                print(f"{variant['name']} declined every golden case: {declined}", file=sys.stderr)
        if folder.exists():
            shutil.rmtree(folder)
        shutil.copytree(place, folder)
    (folder / "index.json").write_text(json.dumps(index, indent=2) + "\n", encoding="utf-8")
    print(f"{folder}: {len(variants)} variants, {sum(len(v['outputs']) for v in index['variants'])} outputs on {index['device']['gpu']}")


if __name__ == "__main__":
    main()
