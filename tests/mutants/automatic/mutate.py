"""Mutates kernels and reference forms automatically and runs each mutant through the default campaign.

Usage: mutate.py --build BUILD [--number N] [--seed S] [--cases N] [--files GLOB] [--output results.json]

BUILD is a build tree with mutation_runner built (the interpreter is enough: no CUDA, no GPU). Needs
universalmutator from PyPI (pip install universalmutator) and Ninja.

Mutants come from universalmutator's rules for C-like languages and from cuda.rules and mathematics.rules beside this file. They are
drawn by seed, evenly over files and, within a file, over rules. A result that stands in the output already is not
computed again, so an interrupted run goes on where it was. Each mutant is one source: it is compiled alone, and linked in
front of the libraries of the build. Its outcome is one of
    killed    with the reason and the number of cases it took
    survived  to be looked at: kill it by a better check, or say in survivors.json what it is
    stillborn it does not compile, or compiles to the same machine code
Exit: 0; 1 when a mutant survived of which survivors.json says nothing; 77 when universalmutator is not there.
"""
import argparse
import concurrent.futures
import contextlib
import fnmatch
import hashlib
import io
import json
import pathlib
import random
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import threading

try:
    from universalmutator import mutator
except ImportError:
    print("not run: universalmutator is not installed (pip install universalmutator)")
    sys.exit(77)

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[2]
RULES = [str(HERE / "cuda.rules"), str(HERE / "mathematics.rules"), "c_like.rules"]
# Comments, checks of the caller and the words that describe a variant are no computation.
IGNORE = [r"^\s*//", r"^#", r"^\s*\}", r"^namespace", r"^template", r"^using", r"return \{\"", r"^\s*\"", r"std::to_string", r"declines", r"too_m", r"GAUGEBLOCK_KERNEL",
          r"^struct", r"^class", r"^ public:", r"^ private:"]


def targets():
    """Source -> (operation, backend, variants, the object that is compiled anew, its only global symbol or None)."""
    found = {}
    for operation in ("recurrence", "axial"):
        for path in sorted((ROOT / "gpu" / operation).glob("*.cu")):
            names = re.findall(r"^(?:Recurrence|Axial)Kernel (\w+)\(\) \{", path.read_text(encoding="utf-8"), re.M)
            if names:
                found[path] = (operation, "simt", names, f"gpu/CMakeFiles/gaugeblock_gpu_simt.dir/{operation}/{path.stem}.simt.cpp.o", None)
        symbol = f"_ZN10gaugeblock{len(operation) + 13}{operation}_cpu_variantsEv"
        forms = [p for p in sorted((ROOT / "reference" / operation).glob("*.h")) if p.stem != "problem"]
        names = [p.stem for p in forms if p.stem not in ("passes", "prefix_range")]
        of_helper = {"passes": names, "prefix_range": ["prefix_product", "prefix_product_segmented"]}
        for path in forms:
            found[path] = (operation, "cpu", of_helper.get(path.stem, [path.stem]),
                           f"verify/CMakeFiles/gaugeblock_variants.dir/variants/{operation}_cpu.cpp.o", symbol)
    return found


def mutants_of(path):
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    with contextlib.redirect_stdout(io.StringIO()):
        found = mutator.mutants_regexp(lines, ruleFiles=RULES, ignorePatterns=IGNORE)
    mutants, occurrences = [], {}
    for number, text, _, (lhs, rhs) in sorted(found, key=lambda one: one[0]):
        mutant = {"file": str(path.relative_to(ROOT)), "line": number, "rule": f"{lhs.pattern} ==> {rhs}".strip(),
                  "from": lines[number - 1].rstrip("\n"), "to": text.rstrip("\n")}
        # The key outlives changes elsewhere in the file: it has the line's text and how many lines like it came before.
        same = (mutant["from"], mutant["to"])
        occurrences.setdefault(same, [])
        if number not in occurrences[same]:
            occurrences[same].append(number)
        mutant["key"] = key_of([mutant["file"], *same, len(occurrences[same])])
        mutants.append(mutant)
    return mutants


def key_of(parts):
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:16]


def draw(all_mutants, number, seed):
    """Evenly over files, and within a file over rules."""
    rng = random.Random(seed)
    piles = {}
    for mutant in all_mutants:
        piles.setdefault(mutant["file"], {}).setdefault(mutant["rule"], []).append(mutant)
    for rules in piles.values():
        for pile in rules.values():
            rng.shuffle(pile)
    order, drawn = {name: rng.sample(sorted(rules), len(rules)) for name, rules in sorted(piles.items())}, []
    while len(drawn) < number and any(order.values()):
        for name in sorted(order):
            if not order[name] or len(drawn) >= number:
                continue
            rule = order[name].pop(0)
            drawn.append(piles[name][rule].pop())
            if piles[name][rule]:
                order[name].append(rule)  # its turn comes again after the others
    return drawn


def command_for(build, output):
    """The command of the build that makes `output`, without the compiler cache."""
    lines = subprocess.run(["ninja", "-C", str(build), "-t", "commands", "-s", output], check=True, capture_output=True, text=True).stdout
    command = [line for line in lines.splitlines() if line.strip()][-1]
    command = re.sub(r"^: && | && :$", "", command)
    return [word for word in shlex.split(command) if not word.endswith("ccache")]


class Build:
    def __init__(self, folder, work):
        self.folder, self.work = folder, work
        self.link = command_for(folder, "tests/mutants/mutation_runner")
        self.unchanged = {}

    def compile(self, path, text, obj, symbol):
        """The object with `text` in place of the file, or None when it does not compile."""
        overlay = self.work / "include"
        shutil.rmtree(overlay, ignore_errors=True)
        place = overlay / "gaugeblock" / path.relative_to(ROOT)
        place.parent.mkdir(parents=True)
        place.write_text(text, encoding="utf-8")
        command = command_for(self.folder, obj)
        result = self.work / "mutant.o"
        for flag in ("-MT", "-MF"):
            if flag in command:
                at = command.index(flag)
                del command[at:at + 2]
        command = [word for word in command if word != "-MD"]
        command[command.index("-o") + 1] = str(result)
        # -fno-gnu-unique: objcopy cannot make a unique symbol local.
        command[1:1] = ["-I", str(overlay), "-fno-gnu-unique"]
        done = subprocess.run(command, cwd=self.folder, capture_output=True, text=True)
        if done.returncode != 0:
            return None
        if symbol:  # templates of the form stay in this object: the bounds must not call them
            subprocess.run(["ld", "-r", "--force-group-allocation", str(result), "-o", str(result) + ".r"], check=True)
            subprocess.run(["objcopy", f"--keep-global-symbol={symbol}", str(result) + ".r", str(result)], check=True)
        return result

    def code_of(self, result):
        return subprocess.run(["objdump", "-d", "-r", "--no-show-raw-insn", str(result)], check=True, capture_output=True, text=True).stdout

    def run(self, result, operation, backend, names, cases, seconds):
        command = list(self.link)
        program = self.work / "mutation_runner"
        command[command.index("-o") + 1] = str(program)
        command.insert(command.index("-o"), str(result))
        linked = subprocess.run(command, cwd=self.folder, capture_output=True, text=True)
        if linked.returncode != 0:
            raise RuntimeError("the mutant does not link: " + linked.stderr.strip()[-2000:])
        try:
            done = subprocess.run([str(program), operation, backend, str(cases), *names], capture_output=True, text=True, timeout=seconds)
        except subprocess.TimeoutExpired:
            return {"outcome": "killed", "reason": f"not done within {seconds} s"}
        if done.returncode < 0:
            return {"outcome": "killed", "reason": f"signal {-done.returncode}"}
        if done.returncode > 0:
            return {"outcome": "killed", "reason": f"exit {done.returncode}: {done.stderr.strip()[:200]}"}
        report = json.loads(done.stdout)
        outcome = "killed" if report.pop("killed") else "survived"
        return {"outcome": outcome, **report}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--number", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--cases", type=int, default=100)
    parser.add_argument("--seconds", type=int, default=180, help="of one mutant's campaign; the unchanged kernel takes a few")
    parser.add_argument("--jobs", type=int, default=1, help="mutants at once")
    parser.add_argument("--files", default="*", help="only files whose path matches this shell pattern")
    parser.add_argument("--fresh", action="store_true", help="forget what stands in the output")
    parser.add_argument("--output", type=pathlib.Path, default=HERE / "results.json")
    options = parser.parse_args()

    # Kernels for a GPU alone have no object here.
    places = {path: place for path, place in targets().items() if (options.build / place[3]).exists()}
    everything = [m for path in places if fnmatch.fnmatch(str(path.relative_to(ROOT)), options.files) for m in mutants_of(path)]
    drawn = draw(everything, options.number, options.seed)
    results = json.loads(options.output.read_text(encoding="utf-8")) if options.output.exists() and not options.fresh else {"mutants": []}
    known = {entry["key"] for entry in results["mutants"]}
    fresh = []
    for mutant in drawn:
        if mutant["key"] not in known:
            known.add(mutant["key"])
            fresh.append(mutant)
    lock = threading.Lock()
    workers = threading.local()

    def outcome_of(build, mutant):
        path = ROOT / mutant["file"]
        operation, backend, names, obj, symbol = places[path]
        text = path.read_text(encoding="utf-8")
        if path not in build.unchanged:
            build.unchanged[path] = build.code_of(build.compile(path, text, obj, symbol))
        lines = text.splitlines(keepends=True)
        lines[mutant["line"] - 1] = mutant["to"] + "\n"
        result = build.compile(path, "".join(lines), obj, symbol)
        if result is None:
            return {"outcome": "stillborn", "reason": "does not compile"}
        if build.code_of(result) == build.unchanged[path]:
            return {"outcome": "stillborn", "reason": "the same machine code"}
        return build.run(result, operation, backend, names, options.cases, options.seconds)

    def look_at(mutant):
        if not hasattr(workers, "build"):
            workers.build = Build(options.build.resolve(), pathlib.Path(tempfile.mkdtemp(dir=folder)))
        outcome = outcome_of(workers.build, mutant)
        with lock:
            results["mutants"].append({**mutant, **outcome})
            counts = {}
            for entry in results["mutants"]:
                counts[entry["outcome"]] = counts.get(entry["outcome"], 0) + 1
            results["summary"] = {"mutants": len(results["mutants"]), **dict(sorted(counts.items()))}
            results["mutants"].sort(key=lambda entry: (entry["file"], entry["line"], entry["key"]))
            lines = ",\n".join(json.dumps(entry, ensure_ascii=False) for entry in results["mutants"])
            text = f'{{"summary": {json.dumps(results["summary"])},\n"mutants": [\n{lines}\n]}}\n'
            options.output.write_text(text, encoding="utf-8")
            print(f"{outcome['outcome']:<9} {mutant['file']}:{mutant['line']}  {outcome.get('reason', '')}", flush=True)

    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        list(pool.map(look_at, fresh))
    print(json.dumps(results.get("summary", {})))
    explained = json.loads((HERE / "survivors.json").read_text(encoding="utf-8"))
    unexplained = [m for m in results["mutants"] if m["outcome"] == "survived" and m["key"] not in explained]
    for mutant in unexplained:
        print(f"survived, and survivors.json does not say why: {mutant['key']} {mutant['file']}:{mutant['line']}")
        print(f"    {mutant['from'].strip()}\n    {mutant['to'].strip()}")
    return 1 if unexplained else 0


if __name__ == "__main__":
    sys.exit(main())
