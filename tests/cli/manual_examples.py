"""Writes the examples of the manual's pages as files: manual_examples.py FOLDER PAGE...

Commands (`selkie run ...`, one a line) go to FOLDER/commands. Blocks of JSON go to FOLDER/PAGE_N.json: whole scenes as they
are, keys of a scene joined to a small tank. Blocks ```csv NAME go to FOLDER/NAME.
"""
import json
import os
import re
import sys

TANK = {
    "domain": {"dimension": 2, "size": [1, 1], "resolution": 32},
    "time": {"end": 0.02, "fps": 100},
    "liquids": [{"shape": {"type": "box", "min": [0, 0], "max": [1, 0.5]}}],
}


def parse(text):
    """JSON with comments and trailing commas, with or without the outer braces."""
    text = re.sub(r"//[^\n]*", "", text).strip().rstrip(",")
    if not text.startswith("{"):
        text = "{" + text + "}"
    return json.loads(re.sub(r",(\s*[}\]])", r"\1", text))


def join(scene, more):
    for key, value in more.items():
        if isinstance(value, dict) and isinstance(scene.get(key), dict):
            join(scene[key], value)
        else:
            scene[key] = value
    return scene


def main():
    folder, pages = sys.argv[1], sys.argv[2:]
    commands = []
    for page in pages:
        text = open(page, encoding="utf-8").read()
        name = os.path.basename(page)[: -len(".md")]
        count = 0
        for kind, body in re.findall(r"^```([^\n]+)\n(.*?)^```", text, re.M | re.S):
            if kind in ("json", "jsonc"):
                example = parse(body)
                whole = "domain" in example and ("liquids" in example or "sources" in example)
                scene = example if whole and body.lstrip().startswith("{") else join(json.loads(json.dumps(TANK)), example)
                with open(f"{folder}/{name}_{count}.json", "w", encoding="utf-8") as file:
                    json.dump(scene, file, indent=2)
                count += 1
            elif kind.startswith("csv "):
                with open(f"{folder}/{kind.split()[1]}", "w", encoding="utf-8") as file:
                    file.write(body)
        text = re.sub(r"\\\n\s*", "", text)
        for line in re.findall(r"^(?:    )?(selkie (?:run|sweep) [^\n]*)", text, re.M):
            line = re.sub(r"\s+#.*", "", line)
            if not line.startswith("selkie run my_scene"):
                # The test says how long to run, and where to.
                commands.append(re.sub(r" --(end|out) \S+", "", line.split(" && ")[0]))
    with open(f"{folder}/commands", "w", encoding="utf-8") as file:
        file.write("".join(command + "\n" for command in dict.fromkeys(commands)))


main()
