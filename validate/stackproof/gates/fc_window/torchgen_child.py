"""Runs in a process of its own, with a tree's ``torchgen`` first on the path: reads schemas, prints them as JSON.

Usage: ``torchgen_child.py TREE schemas|keys``, a JSON list of them on standard input. Of dispatch keys, those that
torchgen refuses are printed, with its sentence. Nothing of this project is imported.
"""

import json
import os
import sys


def one(value, kwarg_only):
    default = getattr(value, "default", None)
    alias = str(value.annotation) if value.annotation is not None else ""
    return [value.name or "", str(value.type), alias, default, kwarg_only]


def refused_keys(keys):
    from torchgen.model import DispatchKey, dispatch_keys

    answer = {}
    for key in keys:
        try:
            if DispatchKey.parse(key) not in dispatch_keys:
                answer[key] = f"{key} is not a supported dispatch key"
        except Exception as error:
            answer[key] = str(error)
    return answer


def schemas(texts):
    from torchgen.model import FunctionSchema

    answer = {}
    for text in texts:
        try:
            schema = FunctionSchema.parse(text)
            arguments = schema.arguments
            by_keyword = {id(a) for a in (*arguments.flat_kwarg_only, *arguments.out)}
            everything = [one(a, id(a) in by_keyword) for a in arguments.flat_all]
            answer[text] = [str(schema.name), everything, [one(r, False) for r in schema.returns]]
        except Exception:  # an entry that this torchgen does not read either
            continue
    return answer


if __name__ == "__main__":
    answer = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever torchgen prints is not the answer
    sys.path.insert(0, sys.argv[1])
    asked = {"schemas": schemas, "keys": refused_keys}[sys.argv[2]]
    json.dump(asked(json.load(sys.stdin)), answer)
    answer.close()
