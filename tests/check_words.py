#!/usr/bin/env python3
"""Finds paths of somebody's own machine in the project's files: what is written there must work anywhere.

Usage: check_words.py SOURCE
"""
import re
import subprocess
import sys
from pathlib import Path

# Homes of people and, added below, the folder of this checkout. In brackets so that this line does not find itself.
HOMES = r"[/]home/[a-z]|[/]root/|[/]Users/[A-Za-z]"
TEXT = {".c", ".h", ".cu", ".md", ".txt", ".cmake", ".in", ".json", ".sh", ".py", ".1", ".dict", ".yml", ""}


def project_files(source):
    """What git tracks or would track; without git, everything but build folders."""
    listed = subprocess.run(["git", "-C", source, "ls-files", "--cached", "--others", "--exclude-standard"],
                            capture_output=True, text=True, check=False)
    if listed.returncode == 0:
        return [source / name for name in listed.stdout.splitlines()]
    return [path for path in source.rglob("*")
            if not any(part in (".git", "out") or part.startswith("build") for part in path.relative_to(source).parts)]


def main():
    source = Path(sys.argv[1]).resolve()
    forbidden = re.compile(HOMES + "|" + re.escape(str(source)) + r"(?=/|\b)")
    found = []
    for path in project_files(source):
        if path.suffix not in TEXT or not path.is_file() or path.stat().st_size > 4_000_000:
            continue
        for number, line in enumerate(path.read_text(encoding="utf-8", errors="replace").splitlines(), 1):
            match = forbidden.search(line)
            if match:
                found.append(f"{path.relative_to(source)}:{number}: names a path of one machine: {match.group(0)}")
    print("\n".join(found) if found else "no machine's own paths")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
