"""make_corpus.py FOLDER: writes the hostile and the good inputs that the readers are tried and fuzzed with.

    FOLDER/safetensors   bad-FAULT: refused as a problem; good-WHAT: taken
    FOLDER/case_text     the same for the text that names a case

`make_corpus.py --check FOLDER` says whether FOLDER holds exactly these.
"""

import itertools
import json
import pathlib
import struct
import sys


def file(header, data=b"", length=None):
    """A safetensors file: `header` as text, bytes or JSON; `length` is what the file claims it to be."""
    if not isinstance(header, (str, bytes)):
        header = json.dumps(header, separators=(",", ":"))
    if isinstance(header, str):
        header = header.encode("utf-8")
    return struct.pack("<Q", len(header) if length is None else length) + header + data


def tensors(shapes, dtype="F32", metadata=None):
    """A file of tensors with the values 0, 1/8, 2/8, …"""
    header = {"__metadata__": metadata} if metadata else {}
    data = b""
    for name, shape in shapes.items():
        elements = 1
        for extent in shape:
            elements *= extent
        piece = b"".join(struct.pack("<f" if dtype == "F32" else "<d", i / 8) for i in range(elements))
        header[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [len(data), len(data) + len(piece)]}
        data += piece
    return file(header, data)


RECURRENCE = {"q": [1, 2, 1, 3], "k": [1, 2, 1, 3], "v": [1, 2, 1, 2], "gate": [1, 2, 1], "beta": [1, 2, 1]}
AXIAL = {"x": [1, 2, 3, 2]}
for _name in ("row", "col"):
    AXIAL[f"{_name}_norm.weight"] = [2]
    AXIAL[f"{_name}_norm.bias"] = [2]
    AXIAL[f"{_name}_qkv.weight"] = [6, 2]
    AXIAL[f"{_name}_out.weight"] = [2, 2]
    AXIAL[f"{_name}_out.bias"] = [2]
HEADS = {"gaugeblock.heads": "2"}


def one(**fields):
    """A file of one tensor "x" whose entry has these fields beside or instead of the right ones."""
    entry = {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}
    entry.update(fields)
    return file({"x": {key: value for key, value in entry.items() if value is not None}}, bytes(4))


def pair(a, b, size):
    """A file of two tensors of two values with these offsets."""
    entry = {"dtype": "F32", "shape": [2]}
    return file({"a": {**entry, "data_offsets": a}, "b": {**entry, "data_offsets": b}}, bytes(size))


def recurrence(changes=None, metadata=None, dtype="F32"):
    shapes = {**RECURRENCE, **(changes or {})}
    return tensors({name: shape for name, shape in shapes.items() if shape is not None}, dtype, metadata)


def axial(changes=None, metadata=None):
    shapes = {**AXIAL, **(changes or {})}
    return tensors({name: shape for name, shape in shapes.items() if shape is not None}, metadata=metadata or HEADS)


ENTRY = '{"dtype":"F32","shape":[1],"data_offsets":[0,4]}'

# Good files hold outputs too, so that they can be judged: by themselves, and with whatever verdict.
RECURRENCE_OUTPUTS = {"y": [1, 2, 1, 2], "final_state": [1, 1, 3, 2]}
NO_STEPS = {"q": [1, 0, 1, 3], "k": [1, 0, 1, 3], "v": [1, 0, 1, 2], "gate": [1, 0, 1], "beta": [1, 0, 1], "y": [1, 0, 1, 2]}
AXIAL_OUTPUTS = {"y": [1, 2, 3, 2]}

SAFETENSORS = {
    "good-recurrence": recurrence(RECURRENCE_OUTPUTS),
    "good-recurrence-state": recurrence(
        {**RECURRENCE_OUTPUTS, "initial_state": [1, 1, 3, 2]}, {"gaugeblock.op": "recurrence", "gaugeblock.format": "1"}
    ),
    "good-recurrence-no-steps": recurrence({**RECURRENCE_OUTPUTS, **NO_STEPS}),
    "good-axial": axial({**AXIAL_OUTPUTS, "row": [1, 2, 3, 2]}),
    "good-axial-row": axial(
        AXIAL_OUTPUTS, {**HEADS, "gaugeblock.passes": "row", "gaugeblock.eps": "1e-3", "gaugeblock.dropout": "0"}
    ),
    # the length
    "bad-empty-file": b"",
    "bad-seven-bytes": bytes(7),
    "bad-length-0": file(""),
    "bad-length-past-end": file("{}", length=3),
    "bad-length-at-limit-in-short-file": file("{}", length=100_000_000),
    "bad-length-over-limit": file("{}", length=100_000_001),
    "bad-length-all-ones": file("{}", length=2**64 - 1),
    "bad-length-sign-bit": file("{}", length=2**63),
    "bad-length-big-endian": struct.pack(">Q", 2) + b"{}",
    # the JSON
    "bad-json-leading-space": file(" {}"),
    "bad-json-byte-order-mark": file(b"\xef\xbb\xbf{}"),
    "bad-json-array": file("[]"),
    "bad-json-unfinished": file('{"x":{'),
    "bad-json-unfinished-string": file('{"x'),
    "bad-json-trailing-brace": file("{}}"),
    "bad-json-trailing-comma": file('{"x":' + ENTRY + ",}", bytes(4)),
    "bad-json-comment": file("{/* */}"),
    "bad-json-single-quotes": file("{'x':" + ENTRY + "}", bytes(4)),
    "bad-json-zero-padding": file(b"{}\0\0\0\0\0\0"),
    "bad-json-nan": file('{"x":NaN}'),
    "bad-json-invalid-utf-8": file(b'{"\xff\xfe":' + ENTRY.encode() + b"}", bytes(4)),
    "bad-json-overlong-utf-8": file(b'{"\xc0\xaf":' + ENTRY.encode() + b"}", bytes(4)),
    "bad-json-lone-surrogate": file('{"\\ud800":' + ENTRY + "}", bytes(4)),
    "bad-json-newline-in-name": file('{"a\nb":' + ENTRY + "}", bytes(4)),
    "bad-json-terminal-escape-in-name": file('{"\\u001b[2J\\n\\u0000":' + ENTRY + "}", bytes(4)),
    "bad-json-deep-arrays": file('{"x":' + "[" * 20_000),
    "bad-json-deep-arrays-closed": file('{"x":' + "[" * 10_000 + "]" * 10_000 + "}"),
    "bad-json-deep-objects": file('{"x":' * 5_000),
    "bad-json-deep-in-shape": file('{"x":{"shape":' + "[" * 20_000),
    "bad-json-long-number": file('{"x":{"shape":[' + "1" * 5_000 + "]}}"),
    "bad-json-long-name": file('{"' + "n" * 5_000 + '":1}'),
    # metadata
    "bad-metadata-null": file({"__metadata__": None}),
    "bad-metadata-number": file({"__metadata__": {"a": 1}}),
    "bad-metadata-object": file({"__metadata__": {"a": {}}}),
    "bad-metadata-key-twice": file('{"__metadata__":{"a":"1","a":"2"}}'),
    "bad-metadata-twice": file('{"__metadata__":{},"__metadata__":{}}'),
    # a tensor
    "bad-tensor-number": file({"x": 1}),
    "bad-tensor-twice": file('{"x":' + ENTRY + ',"x":' + ENTRY + "}", bytes(4)),
    "bad-field-twice": file('{"x":{"dtype":"F32","dtype":"F32","shape":[1],"data_offsets":[0,4]}}', bytes(4)),
    "bad-field-unknown": one(strides=[1]),
    "bad-field-control-characters": file('{"x":{"\\u001b\\n":1}}'),
    "bad-dtype-missing": one(dtype=None),
    "bad-dtype-f16": one(dtype="F16", shape=[2]),
    "bad-dtype-i64": one(dtype="I64", shape=[]),
    "bad-dtype-lower-case": one(dtype="f32"),
    "bad-dtype-number": one(dtype=32),
    "bad-dtype-long": one(dtype="F" * 5_000),
    "bad-shape-missing": one(shape=None),
    "bad-shape-number": one(shape=1),
    "bad-shape-negative": one(shape=[-1]),
    "bad-shape-fraction": one(shape=[1.0]),
    "bad-shape-string": one(shape=["1"]),
    "bad-shape-exponent": file('{"x":{"dtype":"F32","shape":[1e0],"data_offsets":[0,4]}}', bytes(4)),
    "bad-shape-2-63": one(shape=[2**63]),
    "bad-shape-2-64": one(shape=[2**64]),
    "bad-shape-elements-overflow": one(shape=[2**32, 2**32]),
    "bad-shape-elements-wrap-to-1": one(shape=[2**32 + 1, 2**32 - 1, 2**62 + 1]),
    "bad-shape-bytes-overflow": one(shape=[2**62]),
    "bad-shape-bytes-overflow-f64": one(dtype="F64", shape=[2**61], data_offsets=[0, 0]),
    "bad-shape-many-dimensions": one(shape=[1] * 1_000),
    "bad-shape-zero-and-overflow": one(shape=[0, 2**40, 2**40], data_offsets=[0, 0]),
    # offsets
    "bad-offsets-missing": one(data_offsets=None),
    "bad-offsets-none": one(data_offsets=[]),
    "bad-offsets-one": one(data_offsets=[0]),
    "bad-offsets-three": one(data_offsets=[0, 4, 4]),
    "bad-offsets-strings": one(data_offsets=["0", "4"]),
    "bad-offsets-negative": one(data_offsets=[-4, 0]),
    "bad-offsets-reversed": one(data_offsets=[4, 0]),
    "bad-offsets-past-end": one(shape=[2], data_offsets=[0, 8]),
    "bad-offsets-near-2-64": one(data_offsets=[2**64 - 4, 2**64 - 1]),
    "bad-offsets-too-short": one(shape=[2]),
    "bad-offsets-too-long": one(data_offsets=[0, 8]) + bytes(4),
    "bad-offsets-gap": pair([0, 8], [12, 20], 20),
    "bad-offsets-gap-in-front": pair([4, 12], [12, 20], 20),
    "bad-offsets-overlap": pair([0, 8], [4, 12], 12),
    "bad-offsets-same": pair([0, 8], [0, 8], 8),
    "bad-data-trailing": one() + b"\0",
    "bad-data-missing": one()[:-1],
    "bad-data-without-tensors": file("{}", bytes(4)),
    # a good file that is no problem
    "bad-problem-nothing": file("{}      "),
    "bad-problem-both-operations": recurrence({"x": [1, 2, 3, 2]}),
    "bad-problem-missing-v": recurrence({"v": None}),
    "bad-problem-unknown-tensor": recurrence({"initial_sate": [1, 1, 3, 2]}),
    "bad-problem-rank": recurrence({"gate": [2, 1]}),
    "bad-problem-extents": recurrence({"k": [1, 2, 1, 2]}),
    "bad-problem-no-heads": recurrence({"q": [1, 2, 0, 3], "k": [1, 2, 0, 3], "v": [1, 2, 0, 2], "gate": [1, 2, 0], "beta": [1, 2, 0]}),
    "bad-problem-float64": recurrence(dtype="F64"),
    "bad-problem-log-gates": recurrence(metadata={"gaugeblock.gate_space": "log"}),
    "bad-problem-format-2": recurrence(metadata={"gaugeblock.format": "2"}),
    "bad-problem-unknown-op": recurrence(metadata={"gaugeblock.op": "attention"}),
    "bad-problem-unknown-key": recurrence(metadata={"gaugeblock.gatespace": "linear"}),
    "bad-problem-heads-missing": axial(metadata={"framework": "none"}),
    "bad-problem-heads-0": axial(metadata={"gaugeblock.heads": "0"}),
    "bad-problem-heads-3": axial(metadata={"gaugeblock.heads": "3"}),
    "bad-problem-heads-huge": axial(metadata={"gaugeblock.heads": "9" * 30}),
    "bad-problem-heads-newline": axial(metadata={"gaugeblock.heads": "2\n"}),
    "bad-problem-eps-nan": axial(metadata={**HEADS, "gaugeblock.eps": "nan"}),
    "bad-problem-eps-negative": axial(metadata={**HEADS, "gaugeblock.eps": "-1e-5"}),
    "bad-problem-passes": axial(metadata={**HEADS, "gaugeblock.passes": "rows"}),
    "bad-problem-dropout": axial(metadata={**HEADS, "gaugeblock.dropout": "0.1"}),
    "bad-problem-weight-missing": axial({"col_out.bias": None}),
    "bad-problem-weight-transposed": axial({"row_qkv.weight": [2, 6]}),
    "bad-problem-qkv-bias": axial({"row_qkv.bias": [6]}),
    "bad-problem-zero-width": axial({"x": [1, 2, 0, 2]}),
    "bad-golden-half": recurrence({"expected.y": [1, 2, 1, 2]}),
}

CASE_TEXT = {
    "good-recurrence": "recurrence",
    "good-axial": "axial:",
    "good-quoted-size": "recurrence:B=2,T=128,H=4,K=24,V=24,gate=near_one,beta=unit,qkv=normal,state=none,layout=contiguous,seed=42",
    "good-reset": "recurrence:T=8,gate=reset:4:0.9,seed=18446744073709551615",
    "good-constant-gate": "recurrence:T=16,gate=const:6.5e-12,layout=permuted",
    "good-axial-sizes": "axial:B=1,H=2,W=3,D=4,heads=2,seed=1",
    "bad-empty": "",
    "bad-operation": "attention:B=1",
    "bad-no-value": "recurrence:B",
    "bad-no-key": "recurrence:=1",
    "bad-trailing-comma": "recurrence:B=1,",
    "bad-key-twice": "recurrence:B=1,B=1",
    "bad-key-twice-control-character": "recurrence:gate=\x1b[2J,gate=one",
    "bad-key-twice-spelt-out": "recurrence:" + ",".join(2 * [60 * "\x01" + "=" + 60 * "\x02"]),
    "bad-unknown-key": "recurrence:b=1",
    "bad-zero-batches": "recurrence:B=0",
    "bad-negative": "recurrence:T=-1",
    "bad-plus": "recurrence:T=+1",
    "bad-space": "recurrence:T= 1",
    "bad-fraction": "recurrence:T=1.5",
    "bad-hexadecimal": "recurrence:T=0x10",
    "bad-huge": "recurrence:T=99999999999999999999",
    "bad-sizes-overflow": "recurrence:B=4294967295,T=4294967295,H=4294967295,K=4294967295,V=4294967295",
    "bad-typo": "recurrence:gate=nearone",
    "bad-gate-value": "recurrence:gate=const:nan",
    "bad-reset-period": "recurrence:gate=reset:0:1",
    "bad-newline": "recurrence:B=1\n",
    "bad-not-utf-8": b"recurrence:gate=\xff\xfe",
    "bad-zero-byte": b"recurrence:B=1\0",
    "bad-long": "recurrence:B=" + "1" * 5_000,
    "bad-heads-do-not-divide": "axial:D=4,heads=3",
}


def corpus():
    """Every file of the corpus: its content by its path."""
    files = {f"safetensors/{name}": content for name, content in SAFETENSORS.items()}
    for name, text in CASE_TEXT.items():
        files[f"case_text/{name}"] = text if isinstance(text, bytes) else text.encode("utf-8")
    return files


def large_headers():
    """Headers too large to be stored, each made to fill the memory or the time of a reader, as pieces by their names."""
    limit = 100_000_000
    million = 1_000_000
    tensor = '"{}":{{"dtype":"F32","shape":[0],"data_offsets":[0,0]}},'
    return {
        "bad-large-spaces": itertools.chain(["{"], itertools.repeat(" " * million, limit // million - 1), ["}"]),
        "bad-large-string": itertools.chain(['{"'], itertools.repeat("a" * million, limit // million - 1), ['":1']),
        "bad-large-number": itertools.chain(['{"x":'], itertools.repeat("1" * million, limit // million - 1)),
        "bad-large-nesting": itertools.chain(['{"x":'], itertools.repeat("[" * million, limit // million - 1)),
        "bad-large-shape": itertools.chain(['{"x":{"shape":['], itertools.repeat("1," * million, limit // million // 2 - 1)),
        "bad-large-metadata": itertools.chain(
            ['{"__metadata__":{'], (f'"{i}":"{"v" * 900_000}",' for i in range(100)), ['"":""}}']
        ),
        "bad-large-many-keys": itertools.chain(['{"__metadata__":{'], (f'"{i}":"",' for i in range(5 * million)), ['"":""}}']),
        "bad-large-many-tensors": itertools.chain(["{"], (tensor.format(i) for i in range(million)), ['"":1}']),
    }


def large_files(folder):
    """Writes these files one by one; each is gone when the next one comes. Holds none of them in memory."""
    for name, pieces in large_headers().items():
        path = pathlib.Path(folder) / name
        with open(path, "wb") as stream:
            stream.write(bytes(8))
            for piece in pieces:
                stream.write(piece.encode("ascii"))
            length = stream.tell() - 8
            stream.seek(0)
            stream.write(struct.pack("<Q", length))
        yield path
        path.unlink()
    # A hole of 8 TiB behind a header that claims one tensor of them.
    path = pathlib.Path(folder) / "bad-large-hole"
    size = 2**43
    header = file({"x": {"dtype": "F32", "shape": [size // 4], "data_offsets": [0, size]}})
    path.write_bytes(header)
    try:
        with open(path, "r+b") as stream:
            stream.truncate(len(header) + size)
    except OSError as error:
        print(f"bad-large-hole: not tried, the file system has no such files ({error})")
    else:
        yield path
    path.unlink()


def main(folder, check):
    folder = pathlib.Path(folder)
    wanted = corpus()
    if not check:
        for path, content in wanted.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_bytes(content)
    present = {str(path.relative_to(folder)): path for path in folder.rglob("*") if path.is_file()}
    stale = [f"{path}: not made by this program" for path in sorted(set(present) - set(wanted))]
    stale += [f"{path}: missing" for path in sorted(set(wanted) - set(present))]
    stale += [f"{path}: differs" for path in sorted(set(wanted) & set(present)) if present[path].read_bytes() != wanted[path]]
    for complaint in stale:
        print(complaint, file=sys.stderr)
    print(f"{len(wanted)} files, {len(stale)} complaints")
    return 1 if stale else 0


if __name__ == "__main__":
    arguments = [argument for argument in sys.argv[1:] if argument != "--check"]
    if len(arguments) != 1:
        sys.exit("usage: make_corpus.py [--check] FOLDER")
    sys.exit(main(arguments[0], "--check" in sys.argv))
