"""Runs in a process of its own, with the target tree's ``torchgen`` first on the path: prints C-shim headers as JSON.

Usage: ``python -I torchgen_child.py TREE BACKEND...``. Nothing of this project is imported here: the process belongs to
the tree, whatever its age. Exit status 65 says that this torchgen has neither of the two entry points known here; the
caller then uses its command line, which generates everything and takes several times as long.
"""

import inspect
import json
import os
import sys

USE_COMMAND_LINE = 65


class _Recorder:
    """Takes the place of torchgen's file manager and keeps the headers instead of writing them."""

    def __init__(self, folder):
        self.install_dir = folder
        self.written = {}

    def write(self, name, text):
        if name.endswith(".h"):  # the .cpp files cost most of the time and are not checked in
            self.written[name] = text()


def main(tree, backends):
    sys.path.insert(0, tree)
    from torchgen import gen, gen_aoti_c_shim

    if os.path.commonpath([os.path.realpath(gen.__file__), os.path.realpath(tree)]) != os.path.realpath(tree):
        raise SystemExit("the tree's own torchgen was not imported")
    native = os.path.join(tree, "aten/src/ATen/native")
    parsed = gen.parse_native_yaml(
        os.path.join(native, "native_functions.yaml"), os.path.join(native, "tags.yaml"), set()
    )
    if hasattr(gen_aoti_c_shim, "gen_aoti_c_shim_files"):
        headers = _with_files_function(tree, backends, gen, gen_aoti_c_shim, parsed)
    else:
        headers = _with_header_function(backends, gen, gen_aoti_c_shim, parsed)
    return headers


def _structured(gen, parsed):
    from torchgen.model import NativeFunctionsGroup

    grouped = gen.get_grouped_native_functions(parsed.native_functions)
    return [group for group in grouped if isinstance(group, NativeFunctionsGroup)]


def _with_files_function(tree, backends, gen, gen_aoti_c_shim, parsed):
    """torchgen of 2.9 and newer: one function writes the files of several backends."""
    from torchgen.model import DispatchKey

    recorder = _Recorder(tree)
    values = {
        "aoti_fm": recorder,
        "aoti_backends": {None if b == "aten" else DispatchKey.parse(b.upper()) for b in backends},
        "native_functions": parsed.native_functions,
        "backend_indices": parsed.backend_indices,
        "structured_native_functions": _structured(gen, parsed),
        "extra_cuda_headers": "",
        "extend_aoti_c_shim": False,
        "update_aoti_c_shim": True,
    }
    _require_parameters(gen_aoti_c_shim.gen_aoti_c_shim_files, values)
    gen_aoti_c_shim.gen_aoti_c_shim_files(**values)
    return recorder.written


def _with_header_function(backends, gen, gen_aoti_c_shim, parsed):
    """torchgen of 2.6: the caller picks the functions, one function makes one header of one backend."""
    from torchgen.aoti.fallback_ops import inductor_fallback_ops
    from torchgen.model import DispatchKey

    groups = {}
    for group in _structured(gen, parsed):
        delegates = [f.structured_delegate for f in group.functions() if f.structured_delegate is not None]
        if delegates:
            groups[delegates[0]] = group
    by_name = {gen_aoti_c_shim.get_fallback_op_name(f): f for f in parsed.native_functions}
    fallbacks = tuple(by_name[name] for name in sorted(by_name) if name in inductor_fallback_ops)
    headers = {}
    for backend in backends:
        values = {
            "native_functions": fallbacks,
            "func_group_mapping": groups,
            "dispatch_key": DispatchKey.parse(backend.upper()),
            "backend_indices": parsed.backend_indices,
            "header": True,
            "extend_aoti_c_shim": False,
            "includes": "",
        }
        _require_parameters(gen_aoti_c_shim.gen_aoti_c_shim, values)
        headers[f"c_shim_{backend}.h"] = gen_aoti_c_shim.gen_aoti_c_shim(**values)
    return headers


def _require_parameters(function, values):
    if set(inspect.signature(function).parameters) != set(values):
        raise SystemExit(USE_COMMAND_LINE)


if __name__ == "__main__":
    answer = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever torchgen prints is not the answer
    json.dump(main(sys.argv[1], sys.argv[2:]), answer)
    answer.close()
