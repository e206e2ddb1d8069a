"""Where a result comes from: command, date, versions, machine, memory, and a checksum
of the data.
"""

import datetime
import hashlib
import os
import platform
import resource
import sys
from pathlib import Path

import torch

import sgmc
from booklib.datasets import Data
from experiments.options import Options


def provenance(name: str, options: Options) -> dict:
    """Say who put a result together: command, circumstances, memory; a run that was
    resumed when it was finished has its own.
    """
    command = f"python -m experiments run {name} --seeds {options.seeds}"
    command += (" --small" if options.small else "") + (
        f" --device {options.device}" if options.device != "cpu" else ""
    )
    return {
        "command": command,
        **circumstances(options.device),
        "peak_memory_megabytes": peak_memory(options.device),
    }


def circumstances(device: str) -> dict:
    """Say when and on what something is run: date, versions, machine in words, rounding
    of matrix products.
    """
    return {
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "versions": {
            "sgmc": sgmc.__version__,
            "torch": str(torch.__version__),
            "python": platform.python_version(),
        },
        "machine": machine(device),
        "matmul_precision": torch.get_float32_matmul_precision(),
    }


def machine(device: str) -> str:
    """Describe the machine in words: processor or accelerator, cores, threads."""
    processor = platform.processor() or platform.machine()
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        processor = next(
            line.split(":")[1].strip()
            for line in lines
            if line.startswith("model name")
        )
    except (OSError, StopIteration):
        pass
    words = (
        f"{processor}, {os.cpu_count()} cores, {torch.get_num_threads()} thread(s), "
        f"{platform.system()}"
    )
    return (
        f"{torch.cuda.get_device_name(device)}; {words}"
        if device.startswith("cuda")
        else words
    )


def peak_memory(device: str) -> int:
    """Give the largest memory that this process held so far, in megabytes; on an
    accelerator, there.
    """
    if device.startswith("cuda"):
        return round(torch.cuda.max_memory_allocated(device) / 2**20)
    unit = 1 if sys.platform == "darwin" else 1024
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 2**20)


def checksum(*data: Data | None) -> str:
    """Hash inputs and targets; None is left out.

    Example:
        >>> len(checksum(Data(torch.zeros(1, 2), torch.tensor([0]))))
        32
    """
    digest = hashlib.sha256()
    for part in data:
        for tensor in part or ():
            digest.update(tensor.contiguous().view(-1).numpy())
    return digest.hexdigest()[:32]
