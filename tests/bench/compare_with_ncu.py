"""compare_with_ncu.py PROGRAM TABLE OUT: Nsight Compute's memory counters of every kernel, beside the interpreter's counts.

    python3 tests/bench/compare_with_ncu.py build/cuda/tests/bench/kernel_costs data/cost/interpreter.json data/cost/ncu.json
    python3 tests/bench/compare_with_ncu.py --markdown data/cost/ncu.json
    python3 tests/bench/compare_with_ncu.py --check data/cost/interpreter.json data/cost/ncu.json

The first runs `ncu PROGRAM --launch-on-gpu`, on a machine with a GPU, and writes both figures of every launch. TABLE must be of
the same kernels: names, grids and blocks of all launches are compared one by one. The clocks are left alone: counts do not
depend on them. The second prints the result as Markdown. The third needs no GPU: where the interpreter's figures are still those
that were compared, ncu's must be within 2 % of them, for at least eight variants in every launch.
"""

import argparse
import csv
import json
import pathlib
import re
import subprocess
import sys
import tempfile

# What the interpreter counts: ncu's requests (warp instructions) and units.
COUNTERS = {
    "global_load": ("l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum", "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"),
    "global_store": ("l1tex__t_requests_pipe_lsu_mem_global_op_st.sum", "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum"),
    "shared_load": ("smsp__inst_executed_op_shared_ld.sum", "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum"),
    "shared_store": ("smsp__inst_executed_op_shared_st.sum", "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum"),
}
WITHIN = 0.02


def base_name(kernel):
    """"copy_kernel" of "copy_kernel<4, true>"."""
    return re.match(r"\w+", kernel).group()


def three(text):
    """(2, 1, 1) of "(2, 1, 1)"."""
    return [int(number) for number in re.findall(r"\d+", text)]


def number(text):
    return int(float(text.replace(",", "")))


def profile(program, names, ncu):
    """ncu's row of every launch of a kernel of these names, in order; and the profiler's and the GPU's names."""
    metrics = sorted({metric for pair in COUNTERS.values() for metric in pair})
    with tempfile.TemporaryDirectory() as place:
        log = pathlib.Path(place) / "ncu.csv"
        command = [ncu, "--clock-control", "none", "--cache-control", "none", "--csv", "--page", "raw", "--print-units", "base"]
        command += ["--metrics", ",".join([*metrics, "device__attribute_display_name"]), "--log-file", log, program, "--launch-on-gpu"]
        result = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False)
        text = log.read_text(encoding="utf-8") if log.exists() else ""
        if result.returncode != 0:
            sys.exit(f"{' '.join(map(str, command))}: exit code {result.returncode}\n{result.stdout[-2000:]}{result.stderr[-2000:]}{text[-2000:]}")
    rows = list(csv.DictReader(line for line in text.splitlines() if line.startswith('"')))[1:]  # the first says the units
    missing = [metric for metric in metrics if rows and metric not in rows[0]]
    if missing:
        sys.exit(f"ncu gave no {', '.join(missing)}")
    version = re.search(r"Version (\S+)", subprocess.run([ncu, "--version"], capture_output=True, text=True, check=True).stdout).group(1)
    gpu = rows[0].get("device__attribute_display_name", "") if rows else ""
    for row in rows:  # demangled or not, with the types of its parameters or not
        row["name"] = next((word for word in re.findall(r"\w+", row["Kernel Name"]) if word in names), None)
    return [row for row in rows if row["name"]], version, gpu


def pair_of(interpreted, row, counter):
    """Both figures of one counter of a launch, or None where neither saw an access."""
    requests, units = (number(row[metric]) for metric in COUNTERS[counter])
    mine = interpreted.get(counter, {"requests": 0})
    if requests == 0 and mine["requests"] == 0:
        return None
    unit = "sectors" if counter.startswith("global") else "wavefronts"
    return {
        "interpreter": {"requests": mine["requests"], unit: mine.get(unit, 0), "per_request": mine.get("per_request", 0)},
        "ncu": {"requests": requests, unit: units, "per_request": round(units / requests, 4) if requests else 0},
    }


def compare(program, table, out, ncu):
    names = {base_name(launch["kernel"]) for entry in table["costs"] for launch in entry["launches"]}
    rows, version, gpu = profile(program, names, ncu)
    launches = []
    for entry in table["costs"]:
        for position, interpreted in enumerate(entry["launches"]):
            if not rows:
                sys.exit(f"{entry['variant']} on {entry['case']}: ncu saw no further launch: is {program} of the same kernels as the table?")
            row = rows.pop(0)
            found = (row["name"], three(row["Grid Size"]), three(row["Block Size"]))
            wanted = (base_name(interpreted["kernel"]), interpreted["grid"], interpreted["block"])
            if found != wanted:
                sys.exit(f"{entry['variant']} on {entry['case']}, launch {position}: the table has {wanted}, ncu saw {found}")
            launch = {"op": entry["op"], "variant": entry["variant"], "case": entry["case"], "launch": position, "kernel": interpreted["kernel"]}
            for counter in COUNTERS:
                pair = pair_of(interpreted, row, counter)
                if pair:
                    launch[counter] = pair
            launches.append(launch)
    if rows:
        sys.exit(f"ncu saw {len(rows)} launches more than the table has, first {rows[0]['Kernel Name']}")
    lines = ",\n  ".join(json.dumps(launch) for launch in launches)
    head = json.dumps({"format": "1", "gpu": gpu, "ncu": version})[1:-1]
    out.write_text(f'{{{head}, "launches": [\n  {lines}\n]}}\n', encoding="utf-8")
    print(f"{len(launches)} launches compared")


def difference(pair):
    """How far ncu's units per request are from the interpreter's, relative."""
    mine, theirs = pair["interpreter"]["per_request"], pair["ncu"]["per_request"]
    return abs(mine - theirs) / max(mine, theirs)


def worst_difference(launch):
    return max(difference(launch[counter]) for counter in COUNTERS if counter in launch)


def check(table, result):
    """Whether the interpreter's table of today agrees with the profiler."""
    today = {}
    for entry in table["costs"]:
        for position, launch in enumerate(entry["launches"]):
            today[entry["op"], entry["variant"], entry["case"], position] = launch
    agree, differ, changed = set(), set(), set()
    for launch in result["launches"]:
        variant = (launch["op"], launch["variant"])
        now = today.get((*variant, launch["case"], launch["launch"]), {})
        if any(now.get(counter) != launch.get(counter, {}).get("interpreter") for counter in COUNTERS):
            changed.add(variant)
        elif worst_difference(launch) > WITHIN:
            differ.add(variant)
        agree.add(variant)
    agree -= changed | differ

    def names(variants):
        return ", ".join(f"{variant} ({op})" for op, variant in sorted(variants)) or "none"

    print(f"within 2 % in every launch: {names(agree)}")
    print(f"further apart in some launch: {names(differ)}")
    print(f"changed since the profiler saw them: {names(changed)}")
    return 0 if len(agree) >= 8 else 1


def markdown(result):
    rows = {}  # variants whose launches of one kernel have the same figures share a row
    for launch in result["launches"]:
        worst = worst_difference(launch)
        pairs = [launch.get(counter) for counter in COUNTERS]
        cells = [f"{pair['interpreter']['per_request']:.3f} / {pair['ncu']['per_request']:.3f}" if pair else "" for pair in pairs]
        sizes = re.sub(r",(gate|beta|state|passes)=[^,]*", "", launch["case"].split(":")[1])
        verdict = "" if worst <= WITHIN else f"{100 * worst:.0f} % apart"
        variants = rows.setdefault((base_name(launch["kernel"]), sizes, *cells, verdict), [])
        if launch["variant"] not in variants:
            variants.append(launch["variant"])
    print("| kernel | of | case | " + " | ".join(counter.replace("_", " ") for counter in COUNTERS) + " | |")
    print("|---" * (len(COUNTERS) + 4) + "|")
    for (kernel, *cells), variants in rows.items():
        print(f"| {kernel.removesuffix('_kernel')} | {', '.join(variants)} | {' | '.join(cells)} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--markdown", action="store_true")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--ncu", default="ncu", help="the profiler")
    parser.add_argument("files", type=pathlib.Path, nargs="+")
    arguments = parser.parse_args()

    def read(path):
        return json.loads(path.read_text(encoding="utf-8"))

    files = arguments.files
    if arguments.markdown and len(files) == 1:
        markdown(read(files[0]))
    elif arguments.check and len(files) == 2:
        sys.exit(check(read(files[0]), read(files[1])))
    elif not arguments.markdown and not arguments.check and len(files) == 3:
        compare(files[0].resolve(), read(files[1]), files[2], arguments.ncu)
    else:
        parser.error("expected PROGRAM TABLE OUT, --markdown RESULT, or --check TABLE RESULT")


if __name__ == "__main__":
    main()
