"""Checks what each folder may include. Usage: check_includes.py SOURCE_DIR

reference/ depends on Eigen and the standard library; each stage of verify/ only on earlier stages.
"""
import pathlib
import re
import sys

STAGES = {  # stage -> stages it may include beside itself
    "cases": [],
    "variants": ["cases"],
    "bounds": ["cases", "variants"],
    "verdict": ["cases", "variants", "bounds"],
    "relations": ["cases", "variants", "bounds", "verdict"],
    "files": ["cases"],
    "golden": ["cases", "variants", "bounds", "verdict", "files"],
    "report": ["cases", "variants", "bounds", "verdict", "relations"],
    "cli": ["cases", "variants", "bounds", "verdict", "relations", "files", "golden", "report"],
}
INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^>"]+)[>"]', re.M)


def includes(path):
    return INCLUDE.findall(path.read_text(encoding="utf-8"))


def main():
    root = pathlib.Path(sys.argv[1])
    problems = []
    files = sorted((root / "reference").rglob("*.h"))
    for path in files:
        for name in includes(path):
            standard = "/" not in name and "." not in name
            if not (standard or name.startswith("Eigen/") or name.startswith("gaugeblock/reference/")):
                problems.append(f"{path.relative_to(root)} includes {name}: reference/ has Eigen and the standard library only")
    for folder in sorted(p for p in (root / "verify").iterdir() if p.is_dir()):
        if folder.name not in STAGES:
            problems.append(f"verify/{folder.name} is no known stage: add it to {pathlib.Path(__file__).name}")
            continue
        allowed = [folder.name, *STAGES[folder.name]]
        for path in sorted([*folder.rglob("*.h"), *folder.rglob("*.cpp")]):
            files.append(path)
            for name in includes(path):
                stage = re.match(r"gaugeblock/verify/(\w+)/", name)
                if stage and stage.group(1) not in allowed:
                    problems.append(f"{path.relative_to(root)} includes {name}: a later stage")
    for problem in problems:
        print(problem)
    print(f"{len(files)} files looked at, {len(problems)} problems")
    return 1 if problems or not files else 0


if __name__ == "__main__":
    sys.exit(main())
