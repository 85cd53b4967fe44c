"""The style sheet of the HTML report: readable in light and dark, on paper, and without any other file."""

STYLE = """
:root {
  color-scheme: light dark;
  --page: #ffffff; --text: #1c2024; --dim: #5f6771; --line: #d8dde3; --panel: #f5f7f9;
  --passed: #18794e; --failed: #c62a2f; --not-run: #946800; --a: #0b68cb; --b: #c2410c; --c: #6e56cf; --d: #0f766e;
}
@media (prefers-color-scheme: dark) {
  :root {
    --page: #14171a; --text: #e6e8ea; --dim: #9aa3ad; --line: #343b43; --panel: #1d2226;
    --passed: #4cc38a; --failed: #ff7a7f; --not-run: #e2b33c; --a: #6cb0ff; --b: #ff9d5c; --c: #b3a2ff; --d: #4fd1c5;
  }
}
* { box-sizing: border-box; }
body { background: var(--page); color: var(--text); font: 15px/1.5 system-ui, "Segoe UI", Helvetica, Arial,
  "DejaVu Sans", sans-serif; margin: 0 auto; max-width: 1100px; padding: 24px 20px 60px; }
h1 { font-size: 24px; margin: 0 0 4px; } h2 { font-size: 19px; margin: 36px 0 8px; }
h3 { font-size: 16px; margin: 26px 0 6px; } h4 { font-size: 14px; margin: 16px 0 4px; }
code, pre, td.place { font-family: ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", monospace; font-size: 13px; }
pre { background: var(--panel); border: 1px solid var(--line); border-radius: 6px; overflow-x: auto; padding: 10px; }
.dim, .limits { color: var(--dim); } .limits { font-size: 13px; margin-top: 3px; }
.limits ul { margin: 0; padding-left: 18px; } td.name, td code { white-space: nowrap; }
dl.facts { display: grid; grid-template-columns: max-content 1fr; gap: 0 16px; margin: 8px 0; font-size: 14px; }
dl.facts dt { color: var(--dim); } dl.facts dd { margin: 0; overflow-wrap: anywhere; }
.badge { border: 1.5px solid currentColor; border-radius: 12px; display: inline-block; font-size: 13px;
  font-weight: 600; line-height: 1.4; padding: 1px 10px; white-space: nowrap; vertical-align: middle; }
.passed { color: var(--passed); } .failed { color: var(--failed); } .not-run, .unproved { color: var(--not-run); }
.partial { border: 1px solid var(--not-run); border-radius: 6px; color: var(--not-run); padding: 8px 12px; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-size: 14px; width: 100%; }
th { color: var(--dim); font-weight: 600; text-align: left; }
th, td { border-bottom: 1px solid var(--line); padding: 6px 10px 6px 0; vertical-align: top; }
th.number, td.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap;
  padding-right: 18px; }
td.place { min-width: 270px; overflow-wrap: anywhere; } tr.note td { color: var(--dim); }
table.dense td { padding: 2px 10px 2px 0; }
details { margin: 8px 0; } summary { cursor: pointer; color: var(--dim); } summary:hover { color: var(--text); }
a { color: inherit; } nav a { margin-right: 14px; }
svg { display: block; max-width: none; } .key svg { display: inline-block; vertical-align: -1px; }
.key { font-size: 13px; margin-right: 18px; white-space: nowrap; }
svg text { fill: var(--text); font-size: 12px; } svg .heading { font-weight: 600; }
svg .tick { fill: var(--dim); font-size: 11px; }
svg .value { fill: var(--dim); } svg .band { fill: var(--panel); } svg .grid { stroke: var(--line); }
svg .one { stroke: var(--dim); stroke-dasharray: 4 3; }
svg .bar { fill: currentColor; opacity: .8; }
svg .mark { stroke-width: 1.5; } svg .filled { stroke: none; } svg .hollow { fill: none; }
svg .filled.output0 { fill: var(--a); } svg .hollow.output0 { stroke: var(--a); }
svg .filled.output1 { fill: var(--b); } svg .hollow.output1 { stroke: var(--b); }
svg .filled.output2 { fill: var(--c); } svg .hollow.output2 { stroke: var(--c); }
svg .filled.output3 { fill: var(--d); } svg .hollow.output3 { stroke: var(--d); }
svg .filled.bad { stroke: var(--failed); stroke-width: 3; paint-order: stroke; }
@media print { body { max-width: none; padding: 0; } details > summary { list-style: none; } }
"""

# Of a plot that is a file of its own.
SVG_STYLE = """
svg { background: #ffffff; font: 12px system-ui, "Segoe UI", Helvetica, Arial, "DejaVu Sans", sans-serif; }
text { fill: #1c2024; } .heading { font-weight: 600; } .tick { fill: #5f6771; font-size: 11px; }
.one { stroke: #5f6771; stroke-dasharray: 4 3; }
.output0 { fill: #0b68cb; } .output1 { fill: #c2410c; } .output2 { fill: #6e56cf; } .output3 { fill: #0f766e; }
"""
