#!/usr/bin/env python3
"""Compiles a kernel with the accessors of simt.h and its twin with raw pointers for sm_90, and compares the machine
code of the two, byte by byte: the portable layer must cost nothing on a GPU.

    compare_code.py NVCC INCLUDE_DIR SOURCE.cu

Exit: 0 equal; 1 different; 77 not run (no nvcc).
"""

import os
import shutil
import struct
import subprocess
import sys
import tempfile


def code_sections(path):
    """Name and bytes of every section of machine code (".text.<kernel>") in a 64-bit little-endian ELF file."""
    with open(path, "rb") as file:
        data = file.read()
    if data[:6] != b"\x7fELF\x02\x01":
        sys.exit(f"{path}: not a 64-bit little-endian ELF file")
    table_offset = struct.unpack_from("<Q", data, 0x28)[0]
    entry_bytes, entries, names_index = struct.unpack_from("<HHH", data, 0x3A)
    headers = [struct.unpack_from("<IIQQQQIIQQ", data, table_offset + i * entry_bytes) for i in range(entries)]
    names_offset = headers[names_index][4]
    sections = {}
    for name, _, _, _, offset, size, *_ in headers:
        begin = names_offset + name
        text = data[begin : data.index(b"\0", begin)].decode()
        if text.startswith(".text."):
            sections[text] = data[offset : offset + size]
    return sections


def main():
    nvcc, include, source = sys.argv[1:4]
    if not shutil.which(nvcc):
        print("not run: no nvcc")
        return 77
    with tempfile.TemporaryDirectory() as folder:
        sections = []
        for defines in ([], ["-DRAW_POINTERS"]):
            cubin = os.path.join(folder, "twin%d.cubin" % len(sections))
            subprocess.run(
                [nvcc, "-std=c++20", "-arch=sm_90", "-O3", "-cubin", "-I" + include, *defines, "-o", cubin, source],
                check=True,
            )
            sections.append(code_sections(cubin))
    accessors, pointers = sections
    if list(accessors) != [".text.twin"] or list(pointers) != [".text.twin"]:
        print("expected one kernel in each:", list(accessors), list(pointers))
        return 1
    left, right = accessors[".text.twin"], pointers[".text.twin"]
    if left != right:
        at = next((i for i, (a, b) in enumerate(zip(left, right)) if a != b), min(len(left), len(right)))
        print(f"different code: {len(left)} and {len(right)} bytes, from byte {at} on")
        return 1
    print(f"same code: {len(left)} bytes")
    return 0 if left else 1


if __name__ == "__main__":
    sys.exit(main())
