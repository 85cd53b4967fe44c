"""Runs in a process of its own: the command line of the torchgen in a folder. Prints the files it makes as JSON.

Usage: ``torchgen_files.py FOLDER OUTPUT ARGUMENT...``. Nothing of this project is imported here. ``OUTPUT``, which
arguments may name, is a folder below the current one; what is in it afterwards is printed, path by path.
"""

import json
import os
import runpy
import sys


def main(folder, output, arguments):
    sys.path.insert(0, folder)
    sys.argv = ["torchgen.gen", *arguments]
    os.makedirs(output)
    runpy.run_module("torchgen.gen", None, "__main__", True)
    made = {}
    for place, _, names in os.walk(output):
        for name in names:
            path = os.path.join(place, name)
            with open(path, encoding="utf-8", errors="replace") as file:
                made[os.path.relpath(path, output)] = file.read()
    return made


if __name__ == "__main__":
    answer = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever torchgen prints is not the answer
    json.dump(main(sys.argv[1], sys.argv[2], sys.argv[3:]), answer)
    answer.close()
