"""compare_with_peers.py LIBRARY [--work recurrence|axial|steps|choice] [--no-compile] [--json FILE]

Times this project's kernels and what PyTorch and flash-linear-attention offer for the same work, in one process on one GPU:
the recurrence, the axial block, and the recurrence against its number of steps. All three unless --work names one; `choice`
times our kernels of the recurrence among themselves, over sizes: what `auto` rests on (gpu/choice.cpp).
LIBRARY is libgaugeblock_kernels.so. Every contestant is checked against float64 first: one whose relative error (Frobenius
norm) is above 1e-2 is not timed. Times are medians of replayed CUDA graphs, inputs rotated past the L2 cache (for `choice` at most
eight). Peers that are not installed, or that fail, are listed as not run, with the reason. An interrupt keeps what was measured.
Exit: 0; 1 when a kernel of ours is wrong; 3 without a GPU.
"""

import argparse
import ctypes
import json
import math
import statistics
import subprocess
import sys

try:
    import torch
    import torch.nn.functional as F
except ImportError:
    sys.exit("compare_with_peers.py: expected PyTorch, found none; pip install torch")

RECURRENCE = [(2, 128, 4, 24), (2, 2048, 16, 64), (4, 4096, 16, 128), (1, 65536, 16, 128)]  # B, T, H, K = V
STEPS = [1, 4, 16, 64, 256, 1024, 4096, 16384, 65536]  # of B = 4, H = 16, K = V = 128
FITTED_FROM = 1024  # steps: the exponent of time against T is a fit over these and more
CHOICE = [(B, T, H, K) for K in (24, 64, 128) for B, H in ((2, 4), (4, 16), (8, 64)) for T in (1, 4, 16, 32, 64, 128, 256)]
CHOSEN_FROM = ["register_masked_attention", "tile_masked_attention", "chunked_split_half", "thread_per_column",
               "warps_per_column", "vector_loads"]
AXIAL = [(4, 32, 32, 64, 4), (8, 128, 128, 128, 8), (4, 256, 256, 64, 4)]  # B, H, W, D, heads
WRONG = 1e-2
PAST_THE_CACHE_BYTES = 256 << 20
REPLAYS = 50

# ---- our kernels through their C interface ----

I64, PTR = ctypes.c_int64, ctypes.c_void_p


class Recurrence(ctypes.Structure):
    _fields_ = (
        [(name, I64) for name in ("batches", "steps", "heads", "key_size", "value_size")]
        + [(name, PTR) for name in ("q", "k", "v", "gate", "beta", "initial_state", "y", "final_state")]
        + [(name + "_stride", I64 * rank) for name, rank in (("q", 4), ("k", 4), ("v", 4), ("gate", 3), ("beta", 3),
                                                            ("initial_state", 4), ("y", 4), ("final_state", 4))]
    )


class Pass(ctypes.Structure):
    _fields_ = [(name, PTR) for name in ("norm_weight", "norm_bias", "qkv_weight", "out_weight", "out_bias")]


class Axial(ctypes.Structure):
    _fields_ = (
        [(name, I64) for name in ("batches", "height", "width", "channels", "heads")]
        + [("eps", ctypes.c_float), ("passes", ctypes.c_int), ("x", PTR), ("y", PTR), ("x_stride", I64 * 4),
           ("y_stride", I64 * 4), ("row", Pass), ("col", Pass)]
    )


class Library:
    def __init__(self, path):
        self.c = ctypes.CDLL(path)
        self.c.gaugeblock_message.restype = ctypes.c_char_p

    def check(self, status):
        if status != 0:
            raise RuntimeError(self.c.gaugeblock_message().decode())

    def prepared(self, op, problem, kept, variant=None):
        """(variant, function that launches on the current stream); `kept` are tensors that must live as long."""
        name, size = ctypes.c_char_p(variant), ctypes.c_size_t()
        if variant is None:
            self.check(getattr(self.c, f"gaugeblock_{op}_variant")(ctypes.byref(problem), ctypes.byref(name)))
        self.check(getattr(self.c, f"gaugeblock_{op}_workspace")(ctypes.byref(problem), variant, ctypes.byref(size)))
        workspace = torch.empty(max(size.value, 1), dtype=torch.uint8, device="cuda")
        stream = lambda: PTR(torch.cuda.current_stream().cuda_stream)
        arguments = lambda: (ctypes.byref(problem), variant, PTR(workspace.data_ptr()), ctypes.c_size_t(size.value), stream())
        if op == "axial":
            self.check(self.c.gaugeblock_axial_prepare(*arguments()))
        launch = getattr(self.c, f"gaugeblock_{op}_launch")

        def run():
            self.check(launch(*arguments()))

        run.kept = (problem, kept, workspace)
        return name.value.decode(), run


def fill(problem, tensors):
    for name, tensor in tensors.items():
        setattr(problem, name, tensor.data_ptr())
        if hasattr(problem, name + "_stride"):
            setattr(problem, name + "_stride", (I64 * tensor.dim())(*tensor.stride()))


# ---- timing ----


def graph_of(runs):
    """A graph that calls each of `runs` in turn."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for run in runs[:3]:
            run()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for run in runs:
            run()
    return graph


def median_us(runs):
    graph = graph_of(runs)
    times = []
    for replay in range(REPLAYS + 3):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        graph.replay()
        end.record()
        end.synchronize()
        if replay >= 3:
            times.append(1e3 * begin.elapsed_time(end) / len(runs))
    return statistics.median(times)


def error_of(actual, expected):
    return ((actual.double() - expected).norm() / expected.norm()).item()


def compare(work, contestants, inputs, expected, rows):
    """`contestants`: name -> function from inputs to a run that returns y. `inputs`: as many as fill the cache."""
    for name, make in contestants.items():
        row = {"work": work, "name": name}
        try:
            runs = [make(one) for one in inputs]
            row["error"] = error_of(runs[0](), expected)
            if not row["error"] <= WRONG:
                row["not_run"] = f"wrong: relative error {row['error']:.2g}"
            else:
                row["median_us"] = median_us(runs)
        except Exception as failure:  # a peer that cannot do this work must not end the comparison
            row["not_run"] = " ".join(str(failure).split())[:200] or type(failure).__name__
        rows.append(row)
        shown = f"{row['median_us']:10.2f} us" if "median_us" in row else f"  not run: {row['not_run']}"
        print(f"  {name:<44} {shown}" + (f"   error {row['error']:.2g}" if "median_us" in row else ""), file=sys.stderr)


def copies(bytes_of_one):
    return max(1, min(256, PAST_THE_CACHE_BYTES // bytes_of_one))


# ---- the recurrence ----


def recurrence_inputs(B, T, H, K, seed):
    generator = torch.Generator(device="cuda").manual_seed(seed)
    normal = lambda *shape: torch.randn(*shape, device="cuda", generator=generator)
    gate = 1 - 1e-2 * torch.rand(B, T, H, device="cuda", generator=generator)
    return {"q": normal(B, T, H, K), "k": normal(B, T, H, K) / K**0.5, "v": normal(B, T, H, K), "gate": gate,
            "beta": torch.ones(B, T, H, device="cuda")}


def recurrence_loop(x, dtype):
    """The definition, step by step."""
    q, k, v, gate, beta = (x[name].to(dtype) for name in ("q", "k", "v", "gate", "beta"))
    state = torch.zeros(q.shape[0], q.shape[2], q.shape[3], v.shape[3], device="cuda", dtype=dtype)
    y = torch.empty_like(v)
    for t in range(q.shape[1]):
        write = (beta[:, t, :, None] * k[:, t])[..., None] * v[:, t, :, None, :]
        state = gate[:, t, :, None, None] * state + write
        y[:, t] = torch.einsum("bhk,bhkv->bhv", q[:, t], state)
    return y


def our_recurrence(library, x, variants, named=None):
    B, T, H, K = x["q"].shape
    V = x["v"].shape[3]
    y, final_state = torch.empty_like(x["v"]), torch.empty(B, H, K, V, device="cuda")
    problem = Recurrence(B, T, H, K, V)
    fill(problem, {**x, "y": y, "final_state": final_state})
    variant, run = library.prepared("recurrence", problem, (x, y, final_state), named)
    variants.add(variant)

    def run_and_return():
        run()
        return y

    return run_and_return


def fla_contestants(work, rows):
    """None, and a row that says why, where flash-linear-attention cannot be used."""
    try:
        from fla.ops.simple_gla import chunk_simple_gla, fused_recurrent_simple_gla
    except Exception as failure:
        rows.append({"work": work, "name": "flash-linear-attention", "not_run": f"not installed ({failure})"})
        return {}

    def made(operation, dtype):
        def make(x):
            q, k, v = (x[name].to(dtype) for name in ("q", "k", "v"))
            log_gate = x["gate"].log()
            return lambda: operation(q, k, v, log_gate, scale=1.0)[0]
        return make

    return {f"fla {operation.__name__} {str(dtype)[6:]}": made(operation, dtype)
            for operation in (fused_recurrent_simple_gla, chunk_simple_gla) for dtype in (torch.float32, torch.bfloat16)}


def exponent_of(points):
    """Least squares of log(time) over log(steps)."""
    x, y = ([math.log(point[i]) for point in points] for i in (0, 1))
    mean_x, mean_y = statistics.mean(x), statistics.mean(y)
    return sum((a - mean_x) * (b - mean_y) for a, b in zip(x, y)) / sum((a - mean_x) ** 2 for a in x)


def compare_steps(library, rows):
    for T in STEPS:
        B, H, K = 4, 16, 128
        work = f"steps B={B} T={T} H={H} K=V={K}"
        print(work, file=sys.stderr)
        inputs = [recurrence_inputs(B, T, H, K, seed) for seed in range(copies(4 * 4 * B * T * H * K))]
        expected = recurrence_loop(inputs[0], torch.float64)
        variants = set()
        contestants = {"gaugeblock auto": lambda x: our_recurrence(library, x, variants)}
        contestants.update({name: make for name, make in fla_contestants(work, rows).items() if "chunk" in name})
        first = len(rows)
        compare(work, contestants, inputs, expected, rows)
        for row in rows[first:]:
            row["steps"] = T
        rows[first]["variant"] = ", ".join(sorted(variants))
    for name in sorted({row["name"] for row in rows if "steps" in row and "median_us" in row}):
        points = [(row["steps"], row["median_us"]) for row in rows
                  if row.get("steps", 0) >= FITTED_FROM and row["name"] == name and "median_us" in row]
        if len(points) >= 3:
            rows.append({"work": f"steps, fit over T >= {FITTED_FROM}", "name": name + ", exponent",
                         "exponent": exponent_of(points)})
            print(f"  {rows[-1]['name']}: {rows[-1]['exponent']:.3f}", file=sys.stderr)


def compare_choice(library, rows):
    for B, T, H, K in CHOICE:
        work = f"choice B={B} T={T} H={H} K=V={K}"
        print(work, file=sys.stderr)
        inputs = [recurrence_inputs(B, T, H, K, seed) for seed in range(min(8, copies(4 * 4 * B * T * H * K)))]
        expected = recurrence_loop(inputs[0], torch.float64)
        variants = set()
        contestants = {name: lambda x, name=name: our_recurrence(library, x, set(), name.encode()) for name in CHOSEN_FROM}
        contestants["gaugeblock auto"] = lambda x: our_recurrence(library, x, variants)
        compare(work, contestants, inputs, expected, rows)
        auto = rows[-1]
        auto["variant"] = ", ".join(sorted(variants))
        times = [row["median_us"] for row in rows[-len(contestants):-1] if "median_us" in row]
        if times and "median_us" in auto:
            auto["of_fastest"] = auto["median_us"] / min(times)
            print(f"  auto: {auto['variant']}, {auto['of_fastest']:.2f} x the fastest", file=sys.stderr)


def compare_recurrence(library, rows):
    for B, T, H, K in RECURRENCE:
        work = f"recurrence B={B} T={T} H={H} K=V={K}"
        print(work, file=sys.stderr)
        inputs = [recurrence_inputs(B, T, H, K, seed) for seed in range(copies(4 * 4 * B * T * H * K))]
        expected = recurrence_loop(inputs[0], torch.float64)
        variants = set()
        compare(work, {"gaugeblock auto": lambda x: our_recurrence(library, x, variants)}, inputs, expected, rows)
        rows[-1]["variant"] = ", ".join(sorted(variants))
        peers = {}
        if T <= 128:
            peers["PyTorch, step by step"] = lambda x: lambda: recurrence_loop(x, torch.float32)
        peers.update(fla_contestants(work, rows))
        compare(work, peers, inputs[: 16 if T <= 128 else len(inputs)], expected, rows)


# ---- the axial block ----


def axial_inputs(B, H, W, D, seed):
    generator = torch.Generator(device="cuda").manual_seed(seed)
    normal = lambda *shape, scale=1.0: scale * torch.randn(*shape, device="cuda", generator=generator)
    parameters = lambda: {"norm_weight": 1 + normal(D, scale=0.1), "norm_bias": normal(D, scale=0.1),
                          "qkv_weight": normal(3 * D, D, scale=D**-0.5), "out_weight": normal(D, D, scale=D**-0.5),
                          "out_bias": normal(D, scale=0.1)}
    return {"x": normal(B, H, W, D), "row": parameters(), "col": parameters()}


def axial_pass(x, p, heads):
    B, N, L, D = x.shape
    n = F.layer_norm(x, (D,), p["norm_weight"], p["norm_bias"], 1e-5)
    q, k, v = (part.view(B, N, L, heads, D // heads).transpose(2, 3) for part in F.linear(n, p["qkv_weight"]).chunk(3, -1))
    o = F.scaled_dot_product_attention(q, k, v).transpose(2, 3).reshape(B, N, L, D)
    return x + F.linear(o, p["out_weight"], p["out_bias"])


def axial_block(x, row, col, heads):
    return axial_pass(axial_pass(x, row, heads).transpose(1, 2), col, heads).transpose(1, 2)


def our_axial(library, x, heads, variants):
    y = torch.empty_like(x["x"])
    B, H, W, D = x["x"].shape
    problem = Axial(B, H, W, D, heads, 1e-5, 0)
    fill(problem, {"x": x["x"], "y": y})
    fill(problem.row, x["row"])
    fill(problem.col, x["col"])
    variant, run = library.prepared("axial", problem, (x, y))
    variants.add(variant)

    def run_and_return():
        run()
        return y

    return run_and_return


def compare_axial(library, rows, with_compile):
    for B, H, W, D, heads in AXIAL:
        work = f"axial B={B} {H}x{W} D={D} heads={heads}"
        print(work, file=sys.stderr)
        inputs = [axial_inputs(B, H, W, D, seed) for seed in range(copies(2 * 4 * B * H * W * D))]
        double = lambda parameters: {name: tensor.double() for name, tensor in parameters.items()}
        expected = axial_block(inputs[0]["x"].double(), double(inputs[0]["row"]), double(inputs[0]["col"]), heads)
        variants = set()
        compare(work, {"gaugeblock auto": lambda x: our_axial(library, x, heads, variants)}, inputs, expected, rows)
        rows[-1]["variant"] = ", ".join(sorted(variants))
        peers = {}

        def peer(block, tf32):
            def make(x):
                def run():
                    torch.backends.cuda.matmul.allow_tf32 = tf32
                    return block(x["x"], x["row"], x["col"], heads)
                return run
            return make

        for precision, tf32 in (("float32", False), ("TF32", True)):
            peers[f"PyTorch eager, SDPA, {precision}"] = peer(axial_block, tf32)
            if with_compile:
                peers[f"torch.compile, {precision}"] = peer(torch.compile(axial_block), tf32)
        compare(work, peers, inputs[:16], expected, rows)
        torch.backends.cuda.matmul.allow_tf32 = False


def driver_version():
    try:
        return subprocess.run(["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"], check=True,
                              capture_output=True, text=True).stdout.split("\n")[0]
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def version_of(module):
    try:
        return getattr(__import__(module), "__version__", "unknown")
    except Exception:
        return "not installed"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("library")
    parser.add_argument("--work", choices=["recurrence", "axial", "steps", "choice"])
    parser.add_argument("--no-compile", action="store_true")
    parser.add_argument("--json")
    options = parser.parse_args()
    if not torch.cuda.is_available():
        print("compare_with_peers.py: expected a CUDA GPU, found none", file=sys.stderr)
        return 3
    torch.backends.cuda.matmul.allow_tf32 = False
    library = Library(options.library)
    rows = []
    try:
        with torch.no_grad():
            if options.work in (None, "recurrence"):
                compare_recurrence(library, rows)
            if options.work in (None, "steps"):
                compare_steps(library, rows)
            if options.work == "choice":
                compare_choice(library, rows)
            if options.work in (None, "axial"):
                compare_axial(library, rows, not options.no_compile)
    finally:  # what was measured before an interrupt is kept
        result = {"gpu": torch.cuda.get_device_name(), "driver": driver_version(), "cuda": torch.version.cuda,
                  "pytorch": torch.__version__, "fla": version_of("fla"), "triton": version_of("triton"), "rows": rows}
        text = json.dumps(result, indent=2) + "\n"
        if options.json:
            with open(options.json, "w", encoding="utf-8") as file:
                file.write(text)
        else:
            print(text, end="")
    return 1 if any(row["name"] == "gaugeblock auto" and "median_us" not in row for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
