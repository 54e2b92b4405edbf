"""Draws which check catches which kind of mutant. Usage: make_mutants_picture.py KILL_TABLE.json OUTPUT.svg

KILL_TABLE.json  what `gaugeblock mutants --json` prints
With --markdown instead of OUTPUT.svg it prints the same as a table for the README. Needs gnuplot, except for that.
"""
import json
import subprocess
import sys


def columns_of(table):
    """Groups of (title, [(label, key)])."""
    others = [checker["name"] for checker in table["checkers"]]
    return [
        ("all of it", [("gaugeblock", "gaugeblock")]),
        ("one part of it alone", [(name, name) for name in ("proved", "likely", "run property", "relation", "interpreter")]),
        ("usual inputs", [("proved", "proved, usual inputs")] + [(name, name) for name in others]),
        ("our inputs", [(name, name + ", our inputs") for name in others]),
    ]


def counts(table, key):
    """kind -> (caught, all)."""
    result = {kind: (0, 0) for kind in table["kinds"]}
    for mutant in table["mutants"]:
        caught, number = result[mutant["kind"]]
        result[mutant["kind"]] = (caught + mutant["checkers"][key], number + 1)
    return result


def alarms(table, key):
    for entry in table["false_alarms"]:
        if entry["checker"] == key:
            return 100 * entry["alarms"] / entry["runs"] if entry["runs"] else 0
    return None  # gaugeblock as a whole: its campaigns are measured elsewhere


def percent(value):
    return "" if value is None else "0" if value == 0 else f"{value:.2g} %"


def markdown(table):
    kinds = list(counts(table, "gaugeblock"))
    chosen = [(label, key) for _, group in columns_of(table)[:3] for label, key in group]
    chosen = [(label + (" (usual inputs)" if key == "proved, usual inputs" else ""), key) for label, key in chosen]
    print("| kind | mutants | " + " | ".join(label for label, _ in chosen) + " |")
    print("|---|" + "---|" * (len(chosen) + 1))
    for kind in kinds:
        print(f"| {kind} | {counts(table, 'gaugeblock')[kind][1]} | " + " | ".join(str(counts(table, key)[kind][0]) for _, key in chosen) + " |")
    total = len(table["mutants"])
    print(f"| **all** | **{total}** | " + " | ".join(f"**{sum(c for c, _ in counts(table, key).values())}**" for _, key in chosen) + " |")
    print("| false alarms | | " + " | ".join(percent(alarms(table, key)) for _, key in chosen) + " |")


def shade(share):
    """Red at 0, white in the middle, blue at 1: readable without telling red from green."""
    low, middle, high = (0xE8, 0x8A, 0x7D), (0xFA, 0xF3, 0xE3), (0x7F, 0xB2, 0xD9)
    start, end, part = (low, middle, 2 * share) if share < 0.5 else (middle, high, 2 * share - 1)
    return "0x" + "".join(f"{round(a + (b - a) * part):02x}" for a, b in zip(start, end))


def picture(table, output):
    groups = columns_of(table)
    kinds = list(counts(table, "gaugeblock"))
    cells, labels, ticks, headings, x = [], [], [], [], 0.0
    for title, group in groups:
        headings.append((x + (len(group) - 1) / 2, title))
        for label, key in group:
            ticks.append((x, label))
            by_kind = counts(table, key)
            for y, kind in enumerate(kinds):
                caught, number = by_kind[kind]
                cells.append(f"{x} {y} {shade(caught / number)}")
                labels.append(f'{x} {y} "{caught}"')
            caught = sum(c for c, _ in by_kind.values())
            cells.append(f"{x} {len(kinds) + 0.3} {shade(caught / len(table['mutants']))}")
            labels.append(f'{x} {len(kinds) + 0.3} "{caught}"')
            share = alarms(table, key)
            if share is not None:
                cells.append(f"{x} {len(kinds) + 1.3} {shade(1 - min(1, share / 5))}")
                labels.append(f'{x} {len(kinds) + 1.3} "{percent(share).replace(" ", "")}"')
            x += 1
        x += 0.5
    numbers = {kind: number for kind, (_, number) in counts(table, "gaugeblock").items()}
    ytics = [f'"{kind} ({numbers[kind]})" {y}' for y, kind in enumerate(kinds)]
    ytics += [f'"all ({len(table["mutants"])})" {len(kinds) + 0.3}', f'"false alarms" {len(kinds) + 1.3}']
    xtics = ", ".join(f'"{label}" {at}' for at, label in ticks)
    titles = "\n".join(f'set label "{title}" at {at},-0.75 center font ",13"' for at, title in headings)
    newline = "\n"
    script = f"""
set terminal svg noenhanced size {190 + 38 * int(x)},{150 + 24 * (len(kinds) + 2)} font 'sans,12' background 'white'
set output '{output}'
set xrange [-0.6:{x - 1.4 + 0.5}]
set yrange [{len(kinds) + 1.9}:-1.1]
set xtics ({xtics}) rotate by 60 right scale 0
set ytics ({", ".join(ytics)}) scale 0
set border 0
set key off
set lmargin 25
set bmargin 8
{titles}
$cells << EOD
{newline.join(cells)}
EOD
$labels << EOD
{newline.join(labels)}
EOD
plot $cells using 1:2:($1-0.48):($1+0.48):($2-0.47):($2+0.47):3 with boxxyerror fs solid noborder lc rgb variable, \\
     $labels using 1:2:3 with labels font ',11'
"""
    subprocess.run(["gnuplot"], input=script, text=True, check=True)


def main():
    source, output = sys.argv[1:]
    with open(source, encoding="utf-8") as file:
        table = json.load(file)
    if output == "--markdown":
        markdown(table)
    else:
        picture(table, output)


if __name__ == "__main__":
    main()
