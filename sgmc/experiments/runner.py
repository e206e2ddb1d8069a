"""What the experiments share: a run of one sampler with one seed that can be stopped and resumed, and result files with provenance."""

import datetime
import hashlib
import json
import os
import platform
import resource
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Generator, Tensor
from tqdm import tqdm

import sgmc
from sgmc.datasets import Data
from sgmc.hyperpriors import draw_precisions
from sgmc.kernels import SGHMC, SGLD
from sgmc.noise import OnlineNoise
from sgmc.posteriors import NetworkPosterior
from sgmc.prediction import brier_score, error_rate, expected_calibration_error, log_score

FORMAT = 1  # of result files and checkpoints
CHECKPOINT = {"settings", "made", "round", "seconds", "processor_seconds", "state"} | {
    *("generator", "precisions", "total", "last", "reservoir", "curve")
}
CHECKPOINT_SECONDS = 30.0
RESULTS = Path(__file__).resolve().parents[2] / "book" / "results"  # where a checkout of the book keeps them


class ExperimentError(RuntimeError):
    """What stops an experiment and the user can mend: the message is one line that says how."""


class DivergedError(ExperimentError):
    """A run that left the finite numbers."""


class Options(NamedTuple):
    """What the command line says."""

    data: Path  #: folder of the data sets
    runs: Path  #: folder for checkpoints, final states and reservoirs
    small: bool = False  #: the small version, on data that are always there
    device: str = "cpu"  #: a device of torch
    seeds: int = 5  #: number of seeds, 0, 1, ...
    resume: bool = False  #: whether to go on with what is there
    progress: bool = True  #: whether to show progress bars


@dataclass(frozen=True)
class Plan:
    """The settings of one run, which a checkpoint must agree with.

    Args:
        method: the name of the sampler or optimiser.
        learning_rate: η.
        momentum_decay: α, of SGHMC and SGD with momentum; None for SGLD and SGD, which have no momentum.
        temperature: T; 1 for a sampler, 0 for an optimiser.
        prior_precision: λ of all weights; None to draw each tensor's by a Gibbs step once a round.
        rounds: number of rounds, of N/n steps each.
        burn_in: number of rounds before predictions are averaged, one network a round.
        batch_size: n, the examples of a minibatch.
        keep_every: number of rounds from one network of the reservoir to the next.
        record_every: number of rounds from one point of the learning curve to the next.
        minibatches: ``"passes"``, slices of the data in an order shuffled anew every round, or ``"fresh"``, a random subset every step.
        noise_refresh: number of steps from one online estimate of the gradient noise's diagonal to the next; None for B̂ = 0.
        annealing: (b, γ) of SGLD's falling step size η(1 + t/b)^−γ after t steps, which then weights the averages; None for a constant one.
        seed: seed of the only generator.

    Raises:
        ValueError: if a setting is out of its range, or of no use to the method.

    Example:
        >>> Plan("SGLD", 1e-4, None).kernel().step_size
        0.0001
    """

    method: str
    learning_rate: float
    momentum_decay: float | None
    temperature: float = 1.0
    prior_precision: float | None = None
    rounds: int = 800
    burn_in: int = 50
    batch_size: int = 500
    keep_every: int = 25
    record_every: int = 10
    minibatches: str = "passes"
    noise_refresh: int | None = None
    annealing: tuple[float, float] | None = None
    seed: int = 0

    def __post_init__(self):
        if self.minibatches not in ("passes", "fresh"):
            raise ValueError(f"minibatches must be 'passes' or 'fresh', but it is {self.minibatches!r}")
        if not 0 <= self.burn_in < self.rounds:
            raise ValueError(f"burn_in must be at least 0 and less than rounds, {self.rounds}, but it is {self.burn_in}")
        if min(self.keep_every, self.record_every) < 1:
            raise ValueError(f"keep_every and record_every must be at least 1, but they are {self.keep_every} and {self.record_every}")
        if self.momentum_decay is None and self.noise_refresh is not None:
            raise ValueError("noise_refresh is for methods with momentum: leave it out, or give momentum_decay")
        if self.momentum_decay is not None and self.annealing is not None:
            raise ValueError("annealing is for methods without momentum: leave it out, or leave out momentum_decay")

    def kernel(self) -> SGHMC | SGLD:
        """Make the kernel that the plan describes."""
        if self.momentum_decay is None:
            step_size = self.learning_rate if self.annealing is None else lambda step: self.learning_rate * self.weight(step)
            return SGLD(step_size, temperature=self.temperature)
        noise = 0.0 if self.noise_refresh is None else OnlineNoise("diagonal", self.noise_refresh)
        return SGHMC.from_learning_rate(self.learning_rate, self.momentum_decay, noise, temperature=self.temperature)

    def weight(self, step: int) -> float:
        """Compute the step size after so many steps over the first one: the weight of the network there (Welling and Teh, 2011, eq. 11)."""
        if self.annealing is None:
            return 1.0
        offset, power = self.annealing
        return (1 + step / offset) ** -power


class PassesPosterior(NetworkPosterior):
    """A posterior seen in passes: each minibatch is the next slice of the data, in an order shuffled anew for every pass.

    Within a pass the errors of the gradients nearly cancel, which those of independent minibatches do not. A remainder of fewer than
    n examples is left out of its pass.
    """

    def draw_indices(self, chains: int, generator: Generator) -> Tensor:
        """Take the next minibatches of the pass, one for each chain: ``(chains, n)`` int64."""
        if not (left := getattr(self, "_left", None)):
            order = torch.randperm(self.num_examples, generator=generator, device=generator.device)
            left = self._left = list(order[: self.num_examples // self.batch_size * self.batch_size].split(self.batch_size))
        return torch.stack([left.pop() for _ in range(chains)])


class CapturedRound:
    """The steps of a round as one CUDA graph, so that Python is paid once a round and not once a step.

    The graph is made of the kernel's own steps, which find their minibatches in one tensor, filled before each replay. Whatever the steps
    read has to stay where it is: the state and the prior's precisions are changed in place.

    Not measured: there was no accelerator when this was written. What needs none is tested on the CPU, with a graph that calls again what
    it was to capture.

    Args:
        run: a run on a CUDA device. Its first round is taken step by step, which warms up what a graph must not start; the random numbers
            are drawn in the same order in both, so that a resumed run goes on as the uninterrupted one.
    """

    def __init__(self, run: "Run"):
        self.posterior, self.kernel, self.generator = run.posterior, run.kernel, run.generator
        self.minibatches = torch.zeros(run.steps_per_round, run.plan.batch_size, dtype=torch.int64, device=run.device)
        self.graph: torch.cuda.CUDAGraph | None = None

    def capture(self, state: NamedTuple) -> None:
        """Capture the steps, which do not happen now, from a state whose tensors stay."""
        self.graph = torch.cuda.CUDAGraph()
        self.graph.register_generator_state(self.generator)
        with torch.cuda.device(self.minibatches.device), torch.cuda.graph(self.graph):
            self.steps(state)

    def steps(self, start: NamedTuple) -> NamedTuple:
        """Take the steps with the minibatches given, and leave the state where it was read."""
        minibatches = iter(self.minibatches)
        self.posterior.draw_indices = lambda chains, generator: next(minibatches)[None]
        state = start
        for _ in self.minibatches:
            state = self.kernel.step(self.posterior, state, self.generator)
        del self.posterior.draw_indices  # back to the method of its class
        for old, new in zip(start, state, strict=True):
            if isinstance(old, Tensor) and new is not old:
                old.copy_(new)
        return state

    def go(self, state: NamedTuple) -> NamedTuple:
        """Go on from a state by one round, step by step or by the graph."""
        self.minibatches.copy_(self.posterior.draw_indices(len(self.minibatches), self.generator))
        if self.graph is None:
            return self.steps(state)
        self.graph.replay()
        return state._replace(num_gradients=state.num_gradients + len(self.minibatches))


class Run:
    """One sampler, one seed: rounds of minibatch steps, with the predictions for some examples averaged as they come.

    After each round the network's class probabilities for ``examples`` are added to a sum, from the burn-in on, and forgotten; every
    ``keep_every`` rounds the weights go into the reservoir. So memory does not grow with the number of sampled networks.

    Args:
        plan: the settings.
        module: the network.
        train: what the posterior is of.
        examples: what is predicted and scored.
        device: a device of torch.
        checkpoint: file to save the run in, every half minute and at the end.
        resume: whether to go on from that file if it is there; the results are those of an uninterrupted run, bit for bit.

    Attributes:
        made: date, versions, machine and precision of the run, or of its last part if it was resumed.
        reservoir: positions kept, each ``(dim,)`` on the CPU.
        curve: learning curve, a dictionary of lists.

    Raises:
        ExperimentError: if the checkpoint is corrupt or of a run with other settings or data; the file is left as it is.
    """

    def __init__(
        self,
        plan: Plan,
        module: torch.nn.Module,
        train: Data,
        examples: Data,
        device: str = "cpu",
        checkpoint: Path | None = None,
        resume: bool = False,
    ):
        self.plan, self.checkpoint, self.device = plan, checkpoint, torch.device(device)
        self.settings = {
            "format": FORMAT,
            **asdict(plan),
            "network": str(module),
            "data": checksum(train, examples),
            "device": self.device.type,
        }
        self.targets = examples.targets
        self.examples = examples.inputs.to(device)
        precision = 1.0 if plan.prior_precision is None else plan.prior_precision
        inputs, targets = train.inputs.to(device), train.targets.to(device)
        kind = PassesPosterior if plan.minibatches == "passes" else NetworkPosterior
        self.posterior = kind(module, inputs, targets, prior_variance=1 / precision, batch_size=plan.batch_size)
        self.generator = Generator(self.device).manual_seed(plan.seed)
        self.kernel = plan.kernel()
        start = self.posterior.initial_position(1, self.generator)
        self.state = self.kernel.init(self.posterior, start, self.generator)
        self.posterior.__dict__.pop("_left", None)  # a pass begins with a round; the first noise estimate took a minibatch
        self.steps_per_round = len(train.targets) // plan.batch_size
        self.round, self.seconds, self.processor_seconds = 0, 0.0, 0.0
        # An online estimate looks at numbers as it goes, and a falling step size is a new number every step: neither fits into a graph.
        self.captures = self.device.type == "cuda" and plan.noise_refresh is None and plan.annealing is None
        self.captured: CapturedRound | None = None
        self.made: dict = {}
        self.total = torch.zeros(len(examples.targets), 10, dtype=torch.float64, device=device)
        self.last = self.total
        self.reservoir: list[Tensor] = []
        self.curve: dict[str, list] = {name: [] for name in ("round", "seconds", "last", "average", "length", "precisions")}
        if resume and checkpoint is not None and checkpoint.exists():
            self.load()

    @property
    def average(self) -> Tensor:
        """Mean class probabilities ``(n, classes)`` of the networks since the burn-in, weighted if steps fall; float64, on the CPU."""
        weight = sum(self.weight(round) for round in range(self.plan.burn_in + 1, self.round + 1))
        return (self.total / (weight or 1.0)).cpu()

    def weight(self, round: int) -> float:
        """Compute the weight of the network at the end of a round: of its last step."""
        return self.plan.weight(round * self.steps_per_round - 1)

    def go(self, progress: bool = True) -> dict:
        """Run the rounds that are left and return the results of :meth:`result`."""
        quiet = {} if progress else {"disable": True}
        if self.round < self.plan.rounds:
            self.made = circumstances(self.device.type)
        started = saved = time.monotonic()
        processor_started = time.process_time()
        name = f"{self.plan.method}, seed {self.plan.seed}"
        with torch.no_grad(), tqdm(total=self.plan.rounds, initial=self.round, desc=name, unit="round", delay=2, **quiet) as bar:
            while self.round < self.plan.rounds:
                self.one_round()
                now, processor_now = time.monotonic(), time.process_time()
                self.seconds, started = self.seconds + now - started, now
                self.processor_seconds, processor_started = self.processor_seconds + processor_now - processor_started, processor_now
                if self.round % self.plan.record_every == 0 or self.round == self.plan.rounds:
                    self.record()
                if self.checkpoint is not None and (now - saved > CHECKPOINT_SECONDS or self.round == self.plan.rounds):
                    self.save()
                    saved = now
                bar.update()
        return self.result()

    def one_round(self) -> None:
        """Take N/n steps, draw the prior's precisions if the plan says so, and predict."""
        self.take_steps()
        position = self.state.position
        self.round += 1
        if not torch.isfinite(position).all():
            raise DivergedError(f"{self.plan.method} left the finite numbers in round {self.round}: lower its learning rate")
        if self.plan.prior_precision is None:
            self.posterior.prior_precision = draw_precisions(self.posterior, position, self.generator)
        self.last = self.posterior.log_predict(position, self.examples)[0].double().exp()
        if not torch.isfinite(self.last).all():  # the logits overflow before the weights do
            raise DivergedError(f"{self.plan.method} left the finite numbers in round {self.round}: lower its learning rate")
        if self.round > self.plan.burn_in:
            self.total += self.last if self.plan.annealing is None else self.weight(self.round) * self.last
            if (self.round - self.plan.burn_in) % self.plan.keep_every == 0:
                self.reservoir.append(position[0].cpu().clone())
        if self.captured is not None and self.captured.graph is None:
            self.captured.capture(self.state)

    def take_steps(self) -> None:
        """Take the N/n steps of a round; on a CUDA device the first round step by step, and the others as a graph of all of them."""
        if self.captures:
            self.captured = self.captured or CapturedRound(self)
            self.state = self.captured.go(self.state)
            return
        for _ in range(self.steps_per_round):
            self.state = self.kernel.step(self.posterior, self.state, self.generator)

    def record(self) -> None:
        """Add a point to the learning curve."""
        point = {
            "round": self.round,
            "seconds": round(self.seconds, 2),
            "last": self.scores(self.last),
            "average": self.scores(self.average) if self.round > self.plan.burn_in else None,
            "length": float(f"{float(self.state.position.square().sum()):.5g}"),
            "precisions": [float(f"{value:.4g}") for value in self.posterior.prior_precision.values()],
        }
        for name, value in point.items():
            self.curve[name].append(value)

    def scores(self, probabilities: Tensor) -> list[float]:
        """Score predictions ``(n, classes)`` by error rate and log loss."""
        probabilities = probabilities.cpu()
        return [round(error_rate(probabilities, self.targets), 6), round(log_score(probabilities, self.targets), 6)]

    def wrong(self, probabilities: Tensor) -> list[int]:
        """List the examples that predictions ``(n, classes)`` get wrong, so that methods can be compared example by example."""
        return (probabilities.cpu().argmax(-1) != self.targets).nonzero()[:, 0].tolist()

    def result(self) -> dict:
        """Return the scores, the learning curve and the costs of the run so far, ready for a result file."""
        return {
            "plan": asdict(self.plan),
            "made": self.made,
            "last": score(self.last.cpu(), self.targets),
            "average": score(self.average, self.targets),
            "wrong": {"last": self.wrong(self.last), "average": self.wrong(self.average)},
            "networks_averaged": max(0, self.round - self.plan.burn_in),
            "networks_kept": len(self.reservoir),
            "gradient_evaluations": self.state.num_gradients,
            "seconds": round(self.seconds, 1),
            "processor_seconds": round(self.processor_seconds, 1),
            "curve": self.curve,
        }

    def save(self) -> None:
        """Write the checkpoint, beside the old one and then over it, so that a stop in the middle of writing loses nothing."""
        content = {
            "settings": self.settings,
            "made": self.made,
            "round": self.round,
            "seconds": self.seconds,
            "processor_seconds": self.processor_seconds,
            "state": tuple(self.state),
            "generator": self.generator.get_state(),
            "precisions": self.posterior.prior_precision,
            "total": self.total,
            "last": self.last,
            "reservoir": self.reservoir,
            "curve": self.curve,
        }
        self.checkpoint.parent.mkdir(parents=True, exist_ok=True)
        unfinished = self.checkpoint.with_name(self.checkpoint.name + ".unfinished")
        torch.save(content, unfinished)
        os.replace(unfinished, self.checkpoint)

    def load(self) -> None:
        """Go back to what :meth:`save` wrote."""
        content = read_checkpoint(self.checkpoint, self.device)
        old = content["settings"]
        changed = [name for name in self.settings | old if old.get(name) != self.settings.get(name)]
        if changed:
            differences = ", ".join(f"{name} was {old.get(name)!r} and is {self.settings.get(name)!r}" for name in changed)
            raise ExperimentError(f"{self.checkpoint} is of a run with other settings ({differences}): undo the change, or delete the file")
        self.state = type(self.state)(*content["state"])
        self.generator.set_state(content["generator"].cpu())
        self.posterior.prior_precision = content["precisions"]
        self.made, self.round = content["made"], content["round"]
        self.seconds, self.processor_seconds = content["seconds"], content["processor_seconds"]
        self.total, self.last = content["total"], content["last"]
        self.reservoir, self.curve = [kept.cpu() for kept in content["reservoir"]], content["curve"]


def read_checkpoint(path: Path, device: torch.device | str = "cpu") -> dict:
    """Read the file that a run wrote.

    Raises:
        ExperimentError: if it is not there, or corrupt.
    """
    if not path.exists():
        raise ExperimentError(f"{path} is missing: run the experiment that writes it first")
    try:
        content = torch.load(path, map_location=device, weights_only=True)
        if missing := CHECKPOINT - content.keys():
            raise KeyError(*missing)
    except Exception as error:
        raise ExperimentError(f"{path} is no checkpoint, or corrupt ({type(error).__name__}): delete it to start that run anew") from error
    return content


def score(probabilities: Tensor, targets: Tensor) -> dict[str, float]:
    """Score predictions by error rate, log loss, Brier score and expected calibration error.

    Example:
        >>> score(torch.tensor([[1.0, 0.0], [1.0, 0.0]]), torch.tensor([0, 0]))["error"]
        0.0
    """
    scores = {"error": error_rate, "log_loss": log_score, "brier": brier_score, "calibration_error": expected_calibration_error}
    return {name: round(function(probabilities, targets), 6) for name, function in scores.items()}


def checksum(*data: Data) -> str:
    """Hash inputs and targets.

    Example:
        >>> len(checksum(Data(torch.zeros(1, 2), torch.tensor([0]))))
        32
    """
    digest = hashlib.sha256()
    for part in data:
        for tensor in part:
            digest.update(tensor.contiguous().view(-1).numpy())
    return digest.hexdigest()[:32]


def circumstances(device: str) -> dict:
    """Say when and on what something is run: date, versions, machine in words, rounding of matrix products."""
    return {
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "versions": {"sgmc": sgmc.__version__, "torch": str(torch.__version__), "python": platform.python_version()},
        "machine": machine(device),
        "matmul_precision": torch.get_float32_matmul_precision(),
    }


def provenance(name: str, options: Options) -> dict:
    """Say who put a result together: command, circumstances, memory; a run that was resumed when it was finished has its own."""
    command = f"python -m sgmc.experiments run {name} --seeds {options.seeds}"
    command += (" --small" if options.small else "") + (f" --device {options.device}" if options.device != "cpu" else "")
    return {"command": command, **circumstances(options.device), "peak_memory_megabytes": peak_memory(options.device)}


def who_ran(result: dict) -> str:
    """Say in a line under a figure who ran what and when."""
    origin = result["provenance"]
    versions = ", ".join(f"{name} {version}" for name, version in origin["versions"].items())
    return f"Stored result of `{origin['command']}`, {origin['date']}, {origin['machine']}, {versions}"


def machine(device: str) -> str:
    """Describe the machine in words: processor or accelerator, cores, threads."""
    processor = platform.processor() or platform.machine()
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        processor = next(line.split(":")[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        pass
    words = f"{processor}, {os.cpu_count()} cores, {torch.get_num_threads()} thread(s), {platform.system()}"
    return f"{torch.cuda.get_device_name(device)}; {words}" if device.startswith("cuda") else words


def peak_memory(device: str) -> int:
    """Give the largest memory that this process held so far, in megabytes; on an accelerator, there."""
    if device.startswith("cuda"):
        return round(torch.cuda.max_memory_allocated(device) / 2**20)
    unit = 1 if sys.platform == "darwin" else 1024
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 2**20)


def write_result(path: Path, result: dict) -> None:
    """Write a result file, in one stroke; lists of numbers stay on one line.

    Raises:
        ExperimentError: if a file of another version is there; it is left as it is.
    """
    if path.exists():
        read_result(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(path.name + ".unfinished")
    unfinished.write_text(_pretty({"format": FORMAT, **result}) + "\n")
    os.replace(unfinished, path)


def read_result(path: Path) -> dict:
    """Read a result file.

    Raises:
        ExperimentError: if it is missing, corrupt, or of another version.
    """
    name = Path(path).stem
    try:
        result = json.loads(Path(path).read_text())
        version = result["format"]
    except FileNotFoundError:
        raise ExperimentError(f"{path} is missing: write it by `python -m sgmc.experiments run {name}`") from None
    except (ValueError, KeyError, TypeError) as error:
        raise ExperimentError(f"{path} is no result file, or corrupt ({error}): move it away and run {name} again") from error
    if version != FORMAT:
        raise ExperimentError(f"{path} has format {version}, and this version reads {FORMAT}: move it away and run {name} again")
    return result


def _pretty(value, indent: str = "") -> str:
    """Write JSON with a line for each entry of a dictionary and for each list of numbers."""
    deeper = indent + " "
    if isinstance(value, dict):
        lines = [f"{deeper}{json.dumps(key)}: {_pretty(item, deeper)}" for key, item in value.items()]
        return "{\n" + ",\n".join(lines) + f"\n{indent}}}"
    if isinstance(value, Sequence) and any(isinstance(item, dict) for item in value):
        return "[\n" + ",\n".join(deeper + _pretty(item, deeper) for item in value) + f"\n{indent}]"
    return json.dumps(value, allow_nan=False)
