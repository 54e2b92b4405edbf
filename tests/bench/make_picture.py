"""Draws the picture of the README: how far correct and wrong implementations are from the truth, in units of the proved
bound. Usage: make_picture.py PROGRAM ERROR_RATIOS OUTPUT.svg

PROGRAM       gaugeblock
ERROR_RATIOS  the program mutant_error_ratios, built from tests/mutants/error_ratios.cpp
Needs gnuplot.
"""
import json
import subprocess
import sys


def main():
    program, faults, output = sys.argv[1:]
    report = json.loads(subprocess.run([program, "verify", "--op", "recurrence", "--seed", "1", "--cases", "1000", "--json"],
                                       check=True, capture_output=True, text=True).stdout)
    correct = [(v["name"], v["worst_ratio"]) for v in report["variants"]]
    wrong = []
    for line in subprocess.run([faults], check=True, capture_output=True, text=True).stdout.splitlines():
        name, ratio = line.split()
        wrong.append((name, float(ratio)))
    rows = correct + sorted(wrong, key=lambda row: row[1])
    data = "\n".join(f'{i} {ratio} "{name.replace("_", " ")}" {0 if i < len(correct) else 1}' for i, (name, ratio) in enumerate(rows))
    script = f"""
set terminal svg noenhanced size 900,{90 + 24 * len(rows)} font 'sans,13' background 'white'
set output '{output}'
set logscale x
set format x '%.0e'
set xrange [1e-2:1e9]
set yrange [{len(rows) - 0.4}:-0.6]
set xlabel 'largest error / proved bound'
set grid x lc rgb '#dddddd'
set key off
set lmargin {max(len(name) for name, _ in rows) + 1}
set arrow from 1,graph 0 to 1,graph 1 nohead lw 2 lc rgb '#444444'
set label 'the bound' at 1.3,graph 0.985 tc rgb '#444444'
$rows << EOD
{data}
EOD
plot $rows using 2:1:ytic(3):4 with points pt 7 ps 0.9 lc variable notitle
"""
    script = script.replace("lc variable", "lc rgb variable").replace("using 2:1:ytic(3):4", "using 2:1:($4 == 1 ? 0xc0392b : 0x2471a3):ytic(3)")
    subprocess.run(["gnuplot"], input=script, text=True, check=True)


if __name__ == "__main__":
    main()
