#!/usr/bin/env python3
"""Fails where a C source differs from what `make format` would leave, or has a line over 120 columns.

Usage: check_format.py SOURCE_FOLDER [CLANG_FORMAT]

Versions of clang-format disagree about details: the layout is that of version 14, the one of Debian 12. With another
version, or with none, only the length of the lines is checked.
"""
import pathlib
import re
import subprocess
import sys

COLUMNS = 120
LAYOUT_VERSION = "14"
FOLDERS = ("bench", "include", "src", "tests", "tools", "docs/examples")
ENDINGS = (".c", ".h", ".cu")


def sources(root):
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*")):
            if path.suffix in ENDINGS and path.is_file():
                yield path


def layout_program(name):
    try:
        answer = subprocess.run([name, "--version"], capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return None
    found = re.search(r"version (\d+)", answer)
    return name if found and found.group(1) == LAYOUT_VERSION else None


def main():
    root = pathlib.Path(sys.argv[1])
    program = layout_program(sys.argv[2] if len(sys.argv) > 2 else "clang-format")
    paths = list(sources(root))
    faults = []
    for path in paths:
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            if len(line) > COLUMNS:
                faults.append(f"{path.relative_to(root)}:{number}: {len(line)} columns; at most {COLUMNS}")
    if program:
        run = subprocess.run([program, "--dry-run", *map(str, paths)], cwd=root, capture_output=True, text=True)
        changed = sorted(set(re.findall(r"^(.*?):\d+:\d+: warning: code should be clang-formatted", run.stderr, re.M)))
        faults += [f"{pathlib.Path(name).relative_to(root)}: layout differs; run make format" for name in changed]
        if run.returncode and not changed:
            faults.append(run.stderr.strip())
    else:
        print(f"clang-format {LAYOUT_VERSION} not found: only the length of lines is checked")
    print("\n".join(faults) if faults else f"{len(paths)} files checked")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
