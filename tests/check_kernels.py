#!/usr/bin/env python3
"""Checks that the simulator uses every kernel. Usage: check_kernels.py SOURCE

A kernel is a function marked SK_KERNEL (src/base/kernel.h) under src/. Its name must occur in other code there, outside
of kernels that are not used themselves. Comments, tests and the example in docs/ do not count. Kernels of the headers in
INTERFACES may have their callers in tests/ instead.
"""
import re
import sys
from pathlib import Path

COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)
DEFINITION = re.compile(r"^SK_KERNEL(?:_BODY|_CALLED)?\s+([^;{}#]*?)\{", re.MULTILINE)
PASTED = re.compile(r"\b(SK_DIM|SK_REAL_)\((\w+)\)")
ENDINGS = {"SK_DIM": ("_2d", "_3d"), "SK_REAL_": ("float", "double", "lanes")}  # what the macros append
NAME = re.compile(r"(\w+)\s*\(")

# Decompositions of one matrix, for kernels of methods; small_dense.c works on batches.
INTERFACES = {"src/linalg/small_dense_kernels.h"}


def words_of(text):
    """The identifiers in a text, also those that macros make."""
    made = {word + ending for macro, word in PASTED.findall(text) for ending in ENDINGS[macro]}
    return set(re.findall(r"\w+", text)) | made


def code_of(path):
    """The text of a file with blanks for comments, so that lines keep their numbers."""
    return COMMENT.sub(lambda match: re.sub(r"[^\n]", " ", match.group(0)), path.read_text(encoding="utf-8"))


def split(code):
    """The kernels of a file as (names, offset, body), and the code without them."""
    kernels, rest, at = [], "", 0
    for match in DEFINITION.finditer(code):
        head, end, depth = match.group(1), match.end(), 1
        while depth and end < len(code):
            depth += {"{": 1, "}": -1}.get(code[end], 0)
            end += 1
        plain_head = PASTED.sub(r"\2", head)
        name = NAME.search(plain_head).group(1)
        macros = [macro for macro, word in PASTED.findall(head) if word == name]
        names = [name + ending for ending in ENDINGS[macros[0]]] if macros else [name]
        kernels.append((names, match.start(), code[match.end():end]))
        rest += code[at:match.start()]
        at = end
    return kernels, rest + code[at:]


def main():
    source = Path(sys.argv[1]).resolve()
    tested = set()
    for path in (source / "tests").rglob("*.[ch]"):
        tested |= words_of(code_of(path))
    waiting, used, count = [], set(), 0
    for path in sorted((source / "src").rglob("*.[ch]")):
        code, relative = code_of(path), str(path.relative_to(source))
        kernels, rest = split(code)
        used |= words_of(rest)
        count += len(kernels)
        for names, offset, body in kernels:
            if relative in INTERFACES and tested.intersection(names):
                used.update(names)
            line = code.count("\n", 0, offset) + 1
            waiting.append((names, f"{relative}:{line}", words_of(body)))

    # A kernel that is used makes those that it calls used.
    reached = True
    while reached:
        reached = [kernel for kernel in waiting if used.intersection(kernel[0])]
        waiting = [kernel for kernel in waiting if kernel not in reached]
        for _, _, words in reached:
            used |= words

    for names, place, _ in waiting:
        print(f"{place}: the kernel {names[0]} has no caller in src/: remove it or use it")
    if not count:
        print("no kernels found under src/: the search is broken")
    elif not waiting:
        print(f"{count} kernels, each with a caller in src/")
    return 1 if waiting or not count else 0


if __name__ == "__main__":
    sys.exit(main())
