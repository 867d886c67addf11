#!/usr/bin/env python3
"""Checks who includes whom (docs/ARCHITECTURE.md). Usage: check_directions.py SOURCE

    tools, bench -> scene, io, render, whitewater -> world -> methods -> linalg, rigid, learn -> grid, particles, geom -> defs -> base

A room may include its own files, those of rooms on its own level (methods apart: one method does not know another)
and those of rooms further to the right. Further:
  - inside src/, includes with quotes start at src/ ("base/status.h");
  - kernel headers (*_kernels.h, compiled by nvcc too) include only headers that nvcc can take;
  - CUDA stays in src/cuda, MPI and PETSc in src/dist;
  - examples and bridges see the public headers only.
"""
import re
import sys
from pathlib import Path

LEVELS = [
    ["tools", "bench", "tests"],
    ["scene", "io", "render", "whitewater"],
    ["world"],
    ["methods", "cuda", "dist"],
    ["linalg", "rigid", "learn"],
    ["grid", "particles", "geom"],
    ["defs"],
    ["base"],
]
LEVEL = {room: level for level, rooms in enumerate(LEVELS) for room in rooms}
BACKENDS = {"cuda", "dist"}  # where a kernel runs: chosen by world alone

KERNEL_SYSTEM_HEADERS = {"stdint.h", "stddef.h", "math.h", "float.h", "limits.h"}
KERNEL_PROJECT_HEADERS = {"base/kernel.h", "base/dimension.h", "base/random.h"}
FOREIGN = [
    ("cuda", "CUDA", re.compile(r"#\s*include\s*[<\"](cuda\w*\.h|cublas\w*|cusparse\w*|thrust/|cub/)|\bcuda[A-Z]\w+\s*\(|\bcudaStream_t\b|<<<")),
    ("dist", "MPI or PETSc", re.compile(r"#\s*include\s*[<\"](mpi|petsc\w*)\.h|\bMPI_[A-Z]\w+|\bPetsc[A-Z]\w+")),
]
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')


def room_of(relative):
    """The room of a path relative to the project: src/geom/shape.c -> geom; None for what has no room."""
    parts = relative.parts
    if parts[0] == "src":
        return parts[1] if len(parts) > 2 else None
    if parts[:2] == ("web", "wasm"):  # the studio of the command, for a page without a server
        return "tools"
    return parts[0] if parts[0] in LEVEL else None


def method_of(relative):
    parts = relative.parts
    return parts[2] if parts[:2] == ("src", "methods") and len(parts) > 3 else None


def check_file(source, path, complaints):
    relative = path.relative_to(source)
    room = room_of(relative)
    # The example of a method is built like one under src/methods; the others are users' programs.
    is_example_method = relative.parts[:3] == ("docs", "examples", "method")
    public_only = room is None and relative.parts[0] in ("python", "blender", "web") or (
        relative.parts[:2] == ("docs", "examples") and not is_example_method)
    is_kernel = path.name.endswith("_kernels.h")
    in_comment = False
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        def complain(text):
            complaints.append(f"{relative}:{number}: {text}")

        # Comments may speak of MPI and CUDA; code may not.
        code = line
        if in_comment:
            if "*/" not in code:
                continue
            code = code.split("*/", 1)[1]
            in_comment = False
        code = re.sub(r"/\*.*?\*/|//.*", "", code)
        if "/*" in code:
            code = code.split("/*", 1)[0]
            in_comment = True

        for home, what, pattern in FOREIGN:
            if relative.parts[0] == "src" and room != home and pattern.search(code):
                complain(f"{what} belongs in src/{home}/")

        match = INCLUDE.match(code)
        if not match:
            continue
        quoted, name = match.group(1) == '"', match.group(2)
        if not quoted:
            if is_kernel and name not in KERNEL_SYSTEM_HEADERS:
                complain(f"a kernel header may not include <{name}>")
            continue
        if public_only:
            complain(f'only <selkie/...> may be included here, not "{name}"')
            continue
        if is_kernel and name not in KERNEL_PROJECT_HEADERS and not name.endswith("_kernels.h"):
            complain(f'a kernel header may include base/kernel.h and other kernel headers, not "{name}"')
        if name == "selkie_config.h":
            continue
        target = source / "src" / name
        if ".." in Path(name).parts or not target.exists():
            if relative.parts[0] == "src":
                complain(f'"{name}" is not a path under src/')
            continue
        target = target.relative_to(source)
        target_room = room_of(target)
        if room is None or target_room is None or room == target_room:
            ours, theirs = method_of(relative), method_of(target)
            if ours and theirs and ours != theirs:
                complain(f"the method {ours} includes the method {theirs}: what both need moves down, what couples them up to world/")
            continue
        if room not in LEVEL or target_room not in LEVEL:
            complain(f'"{name}": no place is known for src/{room if room not in LEVEL else target_room}/ (docs/ARCHITECTURE.md)')
            continue
        if target_room in BACKENDS and room not in ("world", "tests", "bench", "tools"):
            complain(f"{room} may not include {target_room} (\"{name}\"): only world chooses where a kernel runs")
        elif LEVEL[target_room] < LEVEL[room]:
            complain(f'{room} may not include {target_room} ("{name}"): that room lies above it')


def main():
    source = Path(sys.argv[1]).resolve()
    files = []
    for folder in ("src", "tools", "bench", "tests", "docs/examples", "python", "blender", "web"):
        files += [path for path in sorted((source / folder).rglob("*")) if path.suffix in (".c", ".h", ".cu", ".cuh")]
    complaints = []
    for path in files:
        check_file(source, path, complaints)
    print("\n".join(complaints) if complaints else f"{len(files)} files keep to the directions")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
