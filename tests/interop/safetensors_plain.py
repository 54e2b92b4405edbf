"""safetensors files with nothing but the standard library and numpy.

    8 bytes    N, little-endian
    N bytes    JSON: {"__metadata__": {…}, "name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}}
    the rest   the data; offsets count from here
"""

import json
import struct

import numpy as np

_DTYPES = {"F32": np.dtype("<f4"), "F64": np.dtype("<f8")}


class BadFile(Exception):
    """A file that is not what its format says."""


def _once(pairs):
    keys = [key for key, _ in pairs]
    if len(set(keys)) != len(keys):
        raise BadFile(f"a key stands twice among {keys}")
    return dict(pairs)


def read(path):
    """The metadata and the tensors, by name, of a file."""
    with open(path, "rb") as stream:
        content = stream.read()
    (length,) = struct.unpack_from("<Q", content)
    header = json.loads(content[8 : 8 + length].decode("utf-8"), object_pairs_hook=_once)
    data = content[8 + length :]
    metadata = header.pop("__metadata__", {})
    tensors = {}
    reached = 0
    for name, entry in sorted(header.items(), key=lambda item: item[1]["data_offsets"]):
        begin, end = entry["data_offsets"]
        if begin != reached:
            raise BadFile(f"{path}: {name} begins at {begin}, and {reached} bytes are taken")
        reached = end
        values = np.frombuffer(data[begin:end], dtype=_DTYPES[entry["dtype"]])
        tensors[name] = values.reshape(entry["shape"])
    if reached != len(data):
        raise BadFile(f"{path}: {len(data) - reached} bytes behind the last tensor")
    return metadata, tensors


def write(path, tensors, metadata=None):
    """Writes numpy arrays of float32 or float64 by name."""
    header = {"__metadata__": metadata} if metadata else {}
    pieces = []
    offset = 0
    for name in sorted(tensors):
        array = np.asarray(tensors[name])
        dtype = {4: "F32", 8: "F64"}[array.dtype.itemsize]
        piece = array.astype(_DTYPES[dtype]).tobytes(order="C")
        header[name] = {"dtype": dtype, "shape": list(array.shape), "data_offsets": [offset, offset + len(piece)]}
        pieces.append(piece)
        offset += len(piece)
    text = json.dumps(header, separators=(",", ":")).encode("utf-8")
    with open(path, "wb") as stream:
        stream.write(struct.pack("<Q", len(text)) + text + b"".join(pieces))
