"""Run the lines of a report in the environment of its library, and compare what they
print with what the report shows.

``python -m conformance reports --environments FOLDER``
"""

import os
import re
import subprocess
import tempfile
from pathlib import Path

FOLDER = Path(__file__).parent
SECONDS = 600
NUMBER = r"(?<![\w.])[-−]?\d+(?:\.\d+)?(?:e[-+]?\d+)?|\b(?:nan|inf)\b"
WORD = r"\b(?:True|False|\w+(?:Error|Exception))\b"


def blocks_of(text: str) -> list[str]:
    """Give the Python blocks of a report."""
    return re.findall(r"^```python\n(.*?)^```", text, re.M | re.S)


def shown_by(text: str) -> str:
    """Give what a report says that was expected and observed."""
    return "\n\n".join(
        part
        for part in re.sub(r"^```.*?^```", "", text, flags=re.M | re.S).split("\n\n")
        if "**Expected**" in part or "**Observed**" in part
    )


def is_shown(number: str, shown: str) -> bool:
    """Say whether a printed number, rounded, is one that the text has.

    A number of the text stands for what rounds to it; a short integer only for itself,
    because a text has such numbers for other reasons, too.
    """
    value = float(number)
    if value != value or abs(value) == float("inf"):
        return number in re.findall(NUMBER, shown)
    for found in re.findall(NUMBER, shown.replace("−", "-")):
        mantissa, _, exponent = found.partition("e")
        short = "." not in found and not exponent and len(found) < 4
        digits = len(mantissa.partition(".")[2])
        unit = 10.0 ** (int(exponent or 0) - digits)
        near = 1e-6 if short else 0.51 * unit
        if found not in ("nan", "inf") and abs(value - float(found)) <= near:
            return True
    return False


def not_shown(printed: str, report: str) -> list[str]:
    """Give the numbers, truth values and errors that were printed and not shown."""
    shown = shown_by(report)
    missing = [x for x in re.findall(NUMBER, printed) if not is_shown(x, shown)]
    return missing + [x for x in re.findall(WORD, printed) if x not in shown]


def run_block(block: str, interpreter: Path) -> str:
    """Run lines of Python in an empty folder; give what they print, and the error in
    which they end.
    """
    alone = os.environ | {"OMP_NUM_THREADS": "1", "JAX_PLATFORMS": "cpu"}
    alone |= {"TF_CPP_MIN_LOG_LEVEL": "3", "TQDM_DISABLE": "1", "MPLBACKEND": "agg"}
    alone.pop("PYTHONPATH", None)
    command = [str(interpreter.absolute()), "-P", "-W", "ignore", "lines.py"]
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "lines.py").write_text(block)
        ran = subprocess.run(
            command,
            cwd=folder,
            env=alone,
            capture_output=True,
            text=True,
            timeout=SECONDS,
        )
    printed = re.sub(r"\[Step [^\r\n]*", "", ran.stdout)  # a bar of jax-sgmc
    ended = ran.stderr.strip().splitlines()[-1:] if ran.returncode else []
    return "\n".join([printed, *(line.partition(":")[0] for line in ended)])


def try_report(report: Path, interpreter: Path) -> str:
    """Run the blocks of a report; give what is wrong, or nothing."""
    text, wrong = report.read_text(), []
    for block in blocks_of(text):
        printed = run_block(block, interpreter)
        if not printed.strip():
            wrong.append("prints nothing")
        if missing := not_shown(printed, text):
            wrong.append(f"prints {', '.join(missing)}, which it does not show")
    return "; ".join(wrong)
