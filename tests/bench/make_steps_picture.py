"""Draws the time of the recurrence against its number of steps. Usage: make_steps_picture.py STEPS.json OUTPUT.svg

STEPS.json  what `compare_with_peers.py --work steps --json` wrote
Needs gnuplot.
"""
import json
import subprocess
import sys

COLOURS = ["#2471a3", "#c0392b", "#7d6608", "#1e8449"]


def main():
    steps, output = sys.argv[1:]
    with open(steps, encoding="utf-8") as file:
        result = json.load(file)
    lines = {}  # name -> [(steps, us, error)]
    for row in result["rows"]:
        if "steps" in row and "median_us" in row:
            lines.setdefault(row["name"], []).append((row["steps"], row["median_us"], row["error"]))
    blocks, plots = [], []
    for i, (name, points) in enumerate(lines.items()):
        blocks.append(f"$line{i} << EOD\n" + "\n".join(f"{x} {y}" for x, y, _ in points) + "\nEOD\n")
        worst = max(error for _, _, error in points)
        plots.append(f"$line{i} using 1:2 with linespoints pt 7 ps 0.6 lw 2 lc rgb '{COLOURS[i]}' title '{name}, error {worst:.1e}'")
    work = next(row["work"] for row in result["rows"] if "steps" in row)
    sizes = " ".join(part for part in work.split()[1:] if not part.startswith("T="))
    script = f"""
set terminal svg noenhanced size 900,520 font 'sans,13' background 'white'
set output '{output}'
set logscale xy
set xrange [0.8:90000]
set format y '%g'
set xtics (1, 4, 16, 64, 256, 1024, 4096, 16384, 65536)
set xlabel 'steps T ({sizes}, {result["gpu"]})'
set ylabel 'microseconds'
set grid lc rgb '#dddddd'
set key top left
{''.join(blocks)}
plot {', '.join(plots)}
"""
    subprocess.run(["gnuplot"], input=script, text=True, check=True)


if __name__ == "__main__":
    main()
