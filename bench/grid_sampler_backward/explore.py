"""Times every sensible variant on chosen rows and prints the fastest: how the selection was found.

    python explore.py BUILD_FOLDER [--rows pr,smooth,...] [--json FILE]

``BUILD_FOLDER`` is what ``build.py`` made.
"""

from __future__ import annotations

import argparse
import json
import math
from pathlib import Path

import torch
from candidates import Library, backward, change_one
from loading import load_libraries
from rows import Row, other_rows, pr_rows
from timing import copy_bandwidth, measure
from variants import spreads_for

ACCURATE = {torch.float32: 3e-5, torch.float16: 2e-3, torch.bfloat16: 1.6e-2}


def error(found: torch.Tensor, right: torch.Tensor) -> float:
    """Largest difference, relative to the largest right value."""
    scale = float(right.abs().max())
    return float((found.double() - right).abs().max()) / (scale or 1.0)


def explore(library: Library, row: Row, *, check: bool) -> dict[str, object]:
    """All variants of one row: medians in ms beside PyTorch's own, and steps of the fastest."""
    case = row.case("cuda")
    own = measure(case.reference, 7)
    found: dict[str, float] = {}
    errors: dict[str, tuple[float, float]] = {}
    right = case.reference(torch.float64) if check else None
    best: tuple[float, list[float]] = (float("inf"), [])
    own_error = (0.0, 0.0)
    if right is not None:
        grads = case.reference()
        own_error = (error(grads[0], right[0]), error(grads[1], right[1]))
    passes = [(name, backward(library, case, spread, turn)) for name, spread, turn in spreads_for(row)]
    if case.dimensions == 2:
        passes.append(("change1", change_one(library, case)))
    for name, work in passes:
        grads = work()
        if right is not None:
            errors[name] = (error(grads[0], right[0]), error(grads[1], right[1]))
            allowed = [max(ACCURATE[row.dtype], 1.5 * one) for one in own_error]
            if not all(one <= most for one, most in zip(errors[name], allowed, strict=True)):
                print("INACCURATE", row.label, name, errors[name], own_error)
        found[name] = measure(work, 9).median
        if found[name] < best[0]:
            best = (found[name], [measure(step, 5).median for step in work.steps])
    ranked = sorted(found.items(), key=lambda item: item[1])
    shown = " ".join(f"{name}={value:.3f}" for name, value in ranked[:5])
    parts = "+".join(f"{part:.3f}" for part in best[1])
    print(f"{row.label}: cuda {own.median:.3f} x{own.median / ranked[0][1]:.2f} {shown} [{parts}]", flush=True)
    return {
        "row": row.label,
        "group": row.group,
        "cuda": own.median,
        "variants": found,
        "errors": errors,
        "own_error": own_error,
        "parts": best[1],
    }


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("build", type=Path)
    parser.add_argument("--rows", default="PR 179756")
    parser.add_argument("--check-below", type=int, default=30_000_000)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    library = load_libraries(arguments.build)
    print(torch.cuda.get_device_name(), torch.__version__, f"copy {copy_bandwidth():.2f} TB/s")
    wanted = arguments.rows.split(",")
    rows = [row for row in pr_rows() + other_rows() if row.group in wanted]
    results = []
    for row in rows:
        results.append(explore(library, row, check=math.prod(row.shape) < arguments.check_below))
        torch.cuda.empty_cache()
    if arguments.json:
        arguments.json.write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
