#!/usr/bin/env python3
"""Compiles all kernel headers (src/**/*_kernels.h, src/base/random.h) with nvcc, for 2D and for 3D.

Usage: compile_kernels.py SOURCE BUILD [NVCC]; exits with 77 (skipped) where there is no nvcc. Nothing runs on a GPU.
"""
import re
import subprocess
import sys
from pathlib import Path

# SK_KERNEL type name(...) with the name possibly wrapped in SK_DIM(); the type may span words and stars.
FUNCTION = re.compile(r"^\s*SK_KERNEL\s+(?:[\w]+[\s*]+)+?(SK_DIM\(\s*\w+\s*\)|\w+)\s*\(", re.MULTILINE)


def main():
    source, build = Path(sys.argv[1]), Path(sys.argv[2])
    nvcc = sys.argv[3] if len(sys.argv) > 3 else ""
    if not nvcc or nvcc.endswith("NOTFOUND"):
        print("skipped: nvcc is not here, so the kernels were compiled for the CPU only")
        return 77
    headers = sorted((source / "src").rglob("*_kernels.h")) + [source / "src/base/random.h"]
    folder = build / "cuda"
    folder.mkdir(exist_ok=True)
    includes, names = [], []
    for header in headers:
        includes.append(f'#include "{header.relative_to(source / "src")}"')
        text = re.sub(r"/\*.*?\*/|//[^\n]*", "", header.read_text(encoding="utf-8"), flags=re.DOTALL)
        names += FUNCTION.findall(text)
    (folder / "selkie_kernel_list.h").write_text(
        "#ifdef SELKIE_KERNEL_INCLUDES\n" + "\n".join(includes) + "\n#else\n"
        + "\n".join(f"KERNEL({name})" for name in names) + "\n#endif\n")
    for dimension in (2, 3):
        command = [nvcc, "-std=c++17", "-c", f"-DSELKIE_DIM={dimension}", "-I", str(source / "src"),
                   "-I", str(source / "include"), "-I", str(build / "generated"), "-I", str(folder), "-Werror", "all-warnings",
                   "-o", str(folder / f"kernels_{dimension}d.o"), str(source / "tests/cuda/compile_kernels.cu")]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            print(f"the kernel headers do not compile with nvcc in {dimension}D:\n{done.stdout}{done.stderr}")
            return 1
    print(f"{len(names)} functions of {len(headers)} headers compile with nvcc in 2D and 3D")
    return 0


if __name__ == "__main__":
    sys.exit(main())
