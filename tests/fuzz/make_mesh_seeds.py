#!/usr/bin/env python3
"""Writes the seeds of the mesh fuzzer: one tetrahedron in every format, behind a byte that chooses it (fuzz_mesh.c).

Usage: make_mesh_seeds.py FOLDER. The seeds are kept in the tree; this says where they come from.
"""
import base64
import json
import struct
import sys
from pathlib import Path

POINTS = [(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1)]
FACES = [(0, 2, 1), (0, 1, 3), (0, 3, 2), (1, 2, 3)]


def obj():
    return "".join(f"v {x} {y} {z}\n" for x, y, z in POINTS) + "".join(f"f {a + 1} {b + 1} {c + 1}\n" for a, b, c in FACES)


def stl_text():
    facets = "".join("facet normal 0 0 0\nouter loop\n" + "".join("vertex %d %d %d\n" % POINTS[i] for i in face)
                     + "endloop\nendfacet\n" for face in FACES)
    return "solid t\n" + facets + "endsolid t\n"


def stl_binary():
    body = b"".join(struct.pack("<3f", 0, 0, 0) + b"".join(struct.pack("<3f", *POINTS[i]) for i in face) + b"\0\0" for face in FACES)
    return b"\0" * 80 + struct.pack("<I", len(FACES)) + body


def ply(kind):
    header = (f"ply\nformat {kind} 1.0\nelement vertex {len(POINTS)}\nproperty float x\nproperty float y\nproperty float z\n"
              f"element face {len(FACES)}\nproperty list uchar int vertex_indices\nend_header\n").encode()
    if kind == "ascii":
        return header + "".join("%d %d %d\n" % p for p in POINTS).encode() + "".join("3 %d %d %d\n" % f for f in FACES).encode()
    return header + b"".join(struct.pack("<3f", *p) for p in POINTS) + b"".join(struct.pack("<B3i", 3, *f) for f in FACES)


def gltf():
    points = b"".join(struct.pack("<3f", *p) for p in POINTS)
    indices = b"".join(struct.pack("<3H", *f) for f in FACES)
    uri = "data:application/octet-stream;base64," + base64.b64encode(points + indices).decode()
    return json.dumps({
        "asset": {"version": "2.0"}, "scene": 0, "scenes": [{"nodes": [0]}], "nodes": [{"mesh": 0}],
        "meshes": [{"primitives": [{"attributes": {"POSITION": 0}, "indices": 1}]}],
        "buffers": [{"byteLength": len(points + indices), "uri": uri}],
        "bufferViews": [{"buffer": 0, "byteLength": len(points)},
                        {"buffer": 0, "byteOffset": len(points), "byteLength": len(indices)}],
        "accessors": [{"bufferView": 0, "componentType": 5126, "count": 4, "type": "VEC3", "min": [0, 0, 0], "max": [1, 1, 1]},
                      {"bufferView": 1, "componentType": 5123, "count": 12, "type": "SCALAR"}]})


def main():
    folder = Path(sys.argv[1])
    seeds = {"obj": (0, obj()), "stl_text": (1, stl_text()), "stl_binary": (1, stl_binary()), "ply_text": (2, ply("ascii")),
             "ply_binary": (2, ply("binary_little_endian")), "gltf": (3, gltf())}
    for name, (choice, content) in seeds.items():
        data = content.encode() if isinstance(content, str) else content
        (folder / name).write_bytes(bytes([choice]) + data)


if __name__ == "__main__":
    main()
