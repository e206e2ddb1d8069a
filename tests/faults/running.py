"""Faults in the loop and what is around it: sampling, adaptation, draws, diagnostics, predictions, data sets."""

from functools import partial

from tests.faults.planting import Fault

SAMPLING = "tests/test_sampling.py"
BAR = "test_progress_in_a_notebook_is_shown_while_it_runs_and_leaves_nothing"
LOG = "test_progress_goes_to_standard_error_only_and_not_into_a_log_file"
sampling = partial(Fault, file="sgmc/sampling.py")
adaptation = partial(Fault, file="sgmc/tuning/adaptation.py", tests="tests/test_adaptation.py")
draws = partial(Fault, file="sgmc/draws.py", tests="tests/test_draws.py")
diagnostics = partial(Fault, file="booklib/diagnostics.py", tests="tests/test_diagnostics.py")
prediction = partial(Fault, file="booklib/prediction.py", tests="tests/test_prediction.py tests/experiments/test_uncertainty.py")
tuning = partial(Fault, file="sgmc/tuning/defaults.py", tests="tests/test_tuning.py")
from_disk = partial(Fault, file="booklib/datasets.py", tests="tests/test_from_disk.py")
datasets = partial(Fault, file="booklib/datasets.py", tests="tests/test_datasets.py")
starting = partial(Fault, file="sgmc/starting.py", tests="tests/test_starting.py")
remarks = partial(Fault, file="sgmc/remarks.py", tests="tests/test_remarks.py")
consensus = partial(Fault, file="sgmc/machines/consensus.py", tests="tests/test_consensus.py")
cluster = partial(Fault, file="sgmc/machines/cluster.py", tests="tests/test_cluster.py")
thinning = partial(Fault, file="sgmc/fidelity/thinning.py", tests="tests/test_thinning.py")

FAULTS = [
    # the door
    starting("a density of zero is let in", "if not value.isfinite().all():", "if value.isnan().all():"),
    starting("neighbours may change a likelihood", "if not _agree(among_fewer, among_all[: len(among_fewer)]):", "if False:"),
    starting("neighbours are asked at the start alone", "near = position[:1] + 0.1 *", "near = position[:1] + 0.0 *"),
    starting("what is cut off is let in", "and _cut_off(potential, near, direction, energy, expected):", "and False:"),
    starting("the end of a support is taken for a cut", "(odd & found.isfinite()).double().mean()", "odd.double().mean()"),
    remarks("widths are not compared", "for each in (values, widths)", "for each in (values, values)"),
    # the loop
    sampling("a bar stays below its cell", '"file": _Cell(), ', "", tests=f"{SAMPLING}::{BAR}"),
    sampling(
        "a log file is filled with bars", 'else {} if sys.stderr.isatty() else {"disable": True}', "else {}", tests=f"{SAMPLING}::{LOG}"
    ),
    sampling(
        "draws after a divergence are what the memory held, where a reader plays",
        "rest.fill_(math.nan if value.is_floating_point() else 0)",
        "rest.fill_(0)",
        tests="tests/test_play.py",
    ),
    sampling(
        "a divergence before the first draw is an error of the model's alone",
        "if self.done == 0:",
        "if self.num_drawn == 0:",
        tests=f"{SAMPLING}::test_a_step_that_fails_in_the_warm_up_is_a_divergence_too",
    ),
    sampling(
        "a dead run goes on to its end",
        "        if self.done % _CHECK_EVERY == 0:\n            self.check()\n",
        "",
        tests=f"{SAMPLING}::test_a_dead_run_is_stopped_soon",
    ),
    sampling(
        "a run that died in its last steps is taken for sound",
        "        if whole:\n            job.check()\n",
        "",
        tests=f"{SAMPLING}::test_a_divergence_at_the_very_end_is_found",
    ),
    sampling(
        "a dead run is saved",
        "                    job.check()\n                    _save(",
        "                    _save(",
        tests=f"{SAMPLING}::test_a_dead_run_is_not_saved",
    ),
    sampling(
        "a dead run keeps its draws that are not finite",
        "good = int(bad.nonzero()[0]) if bad.any() else good",
        "pass",
        tests=f"{SAMPLING}::test_divergence_names_step_chain_and_cause_and_keeps_the_draws",
    ),
    sampling(
        "seconds are lost by a resume",
        'self.done, self.seconds = content["done"], content["seconds"]',
        'self.done = content["done"]',
        tests=f"{SAMPLING}::test_seconds_are_those_of_all_the_parts_of_a_run",
    ),
    sampling(
        "a resumed run draws other numbers",
        '        self.generator.set_state(content["generator"].cpu())\n',
        "",
        tests=f"{SAMPLING}::test_ctrl_c_ends_the_run_after_its_step_and_resumed_it_draws_what_an_uninterrupted_one_draws",
    ),
    sampling(
        "thinning begins one step early",
        "divmod(self.done + 1 - self.warm_up, self.thinning)",
        "divmod(self.done + 2 - self.warm_up, self.thinning)",
        tests=f"{SAMPLING}::test_warm_up_and_thinning_keep_the_steps_they_should",
    ),
    sampling(
        "the warm-up is kept",
        "drawn, remainder = divmod(self.done + 1 - self.warm_up, self.thinning)",
        "drawn, remainder = divmod(self.done + 1, self.thinning)\n        drawn = min(drawn, self.num_samples)",
        tests=f"{SAMPLING}::test_warm_up_and_thinning_keep_the_steps_they_should",
    ),
    sampling(
        "the run ignores the seed",
        "Generator(position.device).manual_seed(seed)\n        self.done, self.seconds",
        "Generator(position.device).manual_seed(0)\n        self.done, self.seconds",
        tests=f"{SAMPLING}::test_the_same_seed_gives_the_same_draws_and_another_one_does_not",
    ),
    sampling(
        "a checkpoint does not look at the kernel",
        'names = ("kernel", "potential",',
        'names = ("potential",',
        tests=f"{SAMPLING}::test_a_checkpoint_of_another_run_is_refused",
    ),
    sampling(
        "a checkpoint does not look at the start",
        '"potential", "start", "warm_up",',
        '"potential", "warm_up",',
        tests=f"{SAMPLING}::test_a_checkpoint_of_another_run_is_refused",
    ),
    sampling(
        "a checkpoint does not look at the thinning",
        '"warm_up", "thinning", "seed", "collect")',
        '"warm_up", "seed", "collect")',
        tests=f"{SAMPLING}::test_a_checkpoint_of_another_run_is_refused",
    ),
    sampling(
        "a torn state is saved",
        "if whole and checkpoint is not None and job.done > begun:",
        "if checkpoint is not None and job.done > begun:",
        tests=f"{SAMPLING}::test_a_second_ctrl_c_stops_at_once_and_no_torn_state_is_saved",
    ),
    sampling(
        "a checkpoint is written at every step",
        "> CHECKPOINT_SECONDS:",
        "> 0.0:",
        tests=f"{SAMPLING}::test_checkpoints_are_not_written_at_every_step",
    ),
    sampling(
        "SIGTERM is swallowed",
        "        if self.signal == signal.SIGTERM:\n            signal.raise_signal(signal.SIGTERM)\n",
        "",
        tests=f"{SAMPLING}::test_sigterm_goes_to_its_own_handler_after_the_run_is_saved",
    ),
    sampling(
        "a statistic that was whole first is cut to whole numbers",
        "if isinstance(value, float) and not kept[name].is_floating_point():",
        "if False:",
        tests=f"{SAMPLING}::test_a_statistic_that_is_whole_first_and_not_later_keeps_its_digits",
    ),
    sampling(
        "draws carry gradients",
        "with torch.no_grad(), stop,",
        "with stop,",
        tests=f"{SAMPLING}::test_draws_do_not_carry_gradients",
    ),
    sampling(
        "a statistic of an inner kernel takes the outer one's place",
        "    if len(found) < len(pairs):\n",
        "    if False:\n",
        tests=f"{SAMPLING}::test_statistics_of_one_name_are_refused",
    ),
    sampling(
        "what is None is a statistic",
        "        elif value is not None:\n            yield name, value",
        "        else:\n            yield name, value",
        tests=f"{SAMPLING}::test_the_statistics_are_what_a_step_declares_to_have_learned",
    ),
    # adaptation
    adaptation("t₀ is 1, not 10", "weight = 1 / (self.time + 10)", "weight = 1 / (self.time + 1)"),
    adaptation("κ is ½, not ¾", "forgetting = self.time**-0.75", "forgetting = self.time**-0.5"),
    adaptation("γ is 0.5, not 0.05", "math.sqrt(self.time) / 0.05 * self.shortfall", "math.sqrt(self.time) / 0.5 * self.shortfall"),
    adaptation("μ is log ε₁, not log 10ε₁", "math.log(10 * step_size), 0.0, 0", "math.log(step_size), 0.0, 0"),
    adaptation(
        "the step size grows as too little is accepted",
        "self.target - acceptance - self.shortfall",
        "acceptance - self.target - self.shortfall",
    ),
    adaptation(
        "the last step size is returned, not the average",
        "step_size=self.averaging.average, mass=self.mass.value",
        "step_size=self.averaging.step_size, mass=self.mass.value",
    ),
    adaptation("the mass is the variance, not its inverse", "Matrix(1 / self.moments.variance())", "Matrix(self.moments.variance())"),
    adaptation(
        "the mass is the standard deviation's inverse", "Matrix(1 / self.moments.variance())", "Matrix(1 / self.moments.variance().sqrt())"
    ),
    adaptation(
        "the first tenth enters the moments",
        "        if self.done in self.ends or self.done == self.first:\n            self.moments",
        "        if self.done in self.ends:\n            self.moments",
    ),
    adaptation(
        "the moments of a window are those of all before too",
        "        if self.done in self.ends or self.done == self.first:\n            self.moments",
        "        if self.done == self.first:\n            self.moments",
    ),
    adaptation(
        "the step size is not searched anew with a new mass",
        "        if self.done in self.ends or self.done == self.lead:\n            self.averaging",
        "        if self.done == self.lead:\n            self.averaging",
    ),
    adaptation(
        "the search starts from the step size, not its average",
        "self.search(self.averaging.average)",
        "self.search(self.averaging.step_size)",
    ),
    adaptation(
        "the search ignores the mass",
        "moved, kicked = leapfrog(potential.gradient, position, momentum, step_size, 1, mass)",
        "moved, kicked = leapfrog(potential.gradient, position, momentum, step_size, 1)",
    ),
    adaptation(
        "the first step size is the one that is too large", "return step_size * min(factor, 1.0)", "return step_size * max(factor, 1.0)"
    ),
    adaptation("a warm-up has the seed of the run", 'manual_seed(derived_seed(seed, "warm-up"))', "manual_seed(seed)"),
    adaptation(
        "the variance counts the distances of the chains' means once, not with each draw",
        "self.count * (mean - mean.mean(0)).square().sum(0)",
        "(mean - mean.mean(0)).square().sum(0)",
    ),
    adaptation(
        "the variance is not drawn towards 0.001",
        "(n / (n + 5)) * squares / max(n - 1, 1) + 1e-3 * (5 / (n + 5))",
        "squares / max(n - 1, 1)",
    ),
    adaptation("windows are all of one length", "        length *= 2\n", ""),
    adaptation("the step size follows the slowest chain for ever", "if self.done <= self.lead and self.recent", "if self.recent"),
    adaptation(
        "the step size never follows the slowest chain", "if self.done <= self.lead and self.recent", "if self.done < 0 and self.recent"
    ),
    adaptation(
        "chains that have not moved enter the variances",
        "        moved = moved if moved.any() else ~moved\n",
        "        moved = torch.ones_like(moved)\n",
    ),
    adaptation("a resumed warm-up forgets its moments", '        vars(self.moments).update(content["moments"])\n', ""),
    adaptation("a resumed warm-up forgets its averages", '        vars(self.averaging).update(content["averaging"])\n', ""),
    adaptation(
        "a resumed warm-up has the first mass",
        'self.done, self.mass, self.recent = content["done"], Matrix(content["mass"]), content["recent"]',
        'self.done, self.recent = content["done"], content["recent"]',
    ),
    # draws
    draws(
        "the standard error is that of one chain", "averages.mean(0), averages.std(0) / chains**0.5", "averages.mean(0), averages.std(0)"
    ),
    draws(
        "the standard error takes all draws for independent",
        "averages.mean(0), averages.std(0) / chains**0.5",
        "averages.mean(0), values.double().flatten(0, 1).std(0) / len(values.flatten(0, 1)) ** 0.5",
    ),
    draws("weights are divided by their number", "(weight * values).sum(0) / weight.sum(0)", "(weight * values).mean(0)"),
    draws("ArviZ gets draws for chains", "value.transpose(0, 1).cpu().numpy()", "value.cpu().numpy()"),
    # diagnostics
    diagnostics("total variation lacks its half", "return 0.5 * (float(", "return 1.0 * (float("),
    # predictions
    prediction("predictions are averaged over draws only", "return probabilities.mean((0, 1))", "return probabilities.mean(0)[0]"),
    prediction(
        "the error rate is the accuracy", "(probabilities.argmax(-1) != targets).double()", "(probabilities.argmax(-1) == targets).double()"
    ),
    prediction("the log score is a sum", ".double().log().mean())", ".double().log().sum())"),
    prediction(
        "the Brier score is that of the right class alone",
        "(probabilities.double() - one_hot).pow(2).sum(-1).mean()",
        "((probabilities.double() - one_hot) * one_hot).pow(2).sum(-1).mean()",
    ),
    prediction(
        "bins of confidence are weighed alike",
        "(count * (accuracy - confidence).abs().nan_to_num()).sum() / count.sum()",
        "((accuracy - confidence).abs().nan_to_num()).mean()",
    ),
    prediction(
        "calibration errors of opposite sign cancel",
        "(accuracy - confidence).abs().nan_to_num()).sum()",
        "(accuracy - confidence).nan_to_num()).sum().abs()",
    ),
    prediction("a confidence of one has a bin of its own", ".long().clamp(max=num_bins - 1)", ".long()"),
    prediction(
        "entropies are in bits",
        "-torch.special.xlogy(probabilities, probabilities).sum(-1)",
        "-torch.special.xlogy(probabilities, probabilities).sum(-1) / 0.6931471805599453",
    ),
    prediction(
        "ties count for nothing in the AUROC",
        "(below + not_above).double().mean() / (2 * len(ordered))",
        "below.double().mean() / len(ordered)",
    ),
    prediction("the surest are rejected", ".argsort(stable=True)", ".argsort(stable=True, descending=True)"),
    # data sets
    datasets("test digits are among those for training", "return Data(inputs[~test], targets[~test])", "return Data(inputs, targets)"),
    datasets("pixels go up to 255", "torch.from_numpy(table[:, :-1] / 255)", "torch.from_numpy(table[:, :-1])"),
    datasets(
        "colours of CIFAR-10 stay beside each other", "torch.from_numpy(loaded.data).permute(0, 3, 1, 2)", "torch.from_numpy(loaded.data)"
    ),
    datasets("ratings of 0 are taken", "table[:, 2].min() < 1 or", "table[:, 2].min() < 0 or"),
    datasets("items have the numbers of users", "for column in (0, 1))", "for column in (0, 0))"),
    datasets("what was rated twice is kept", "    if len(pairs.unique()) < len(pairs):\n", "    if False:\n"),
    datasets(
        "made-up noise has the standard deviation for its variance",
        "means + noise_std * normal(num_ratings)",
        "means + noise_std**0.5 * normal(num_ratings)",
    ),
    datasets("everything is equally popular", "keys += normal(num_users, 1) + 1.5 * normal(1, num_items)", "pass"),
    datasets("a checksum is not looked at", "if md5 is not None and hashlib.md5(content).hexdigest() != md5:", "if False:"),
    datasets(
        "training labels go with test images",
        "in (tensors[:2], tensors[2:]))",
        "in (tensors[:2], (tensors[2], tensors[1][: len(tensors[2])])))",
    ),
    from_disk(
        "the head keeps the number of no examples",
        "        _write_heads(files, kinds, number)\n    except",
        "        pass\n    except",
    ),
    from_disk("all the data are loaded", 'np.load(path, mmap_mode="r")', "np.load(path)"),
    from_disk("the tenth file stands beside the first", "key=lambda path: int(path.stem)", "key=lambda path: path.stem"),
    # tuning
    tuning("what the step widens counts twice", "0.125 * step_size**2", "0.25 * step_size**2"),
    tuning("the transposed half is forgotten", "(half + half.transposed)", "(half + half)"),
    tuning("K is that of another friction", "room = m - 0.5 * step_size * c", "room = m - 0.25 * step_size * c"),
    tuning("the step is twice as long", "2 / max(look.loudness, 1e-12))", "4 / max(look.loudness, 1e-12))"),
    tuning("curvature is twice as large", ".mean(0) / 2", ".mean(0)"),
    tuning("stiff directions do not bound the step", "LONGEST_STEP / math.sqrt(look.stiffness)", "LONGEST_STEP"),
    tuning(
        "draws are looked at one alone",
        "return default_kernel(potential, position, seed), position",
        "return default_kernel(potential, position[:1], seed), position",
    ),
    tuning("the mode is never left", "for turn in range(2):", "for turn in range(0):"),
    tuning("chains beyond twenty are dropped", "[: max(_DRAWS, len(position))]", "[:_DRAWS]"),
    diagnostics("a draw is compared with itself", "pairs.fill_diagonal_(0)", "pass"),
    diagnostics(
        "the discrepancy forgets the dimension",
        "pull = (own[:, None] + own - cross - cross.mT) / dim",
        "pull = own[:, None] + own - cross - cross.mT",
    ),
    diagnostics("the discrepancy's error is that of pairs counted once", "math.sqrt(2 * float(pairs", "math.sqrt(1 * float(pairs"),
    # few draws
    thinning("the first of every piece is kept", "(pieces + 0.5) * total", "pieces * total"),
    thinning("herding looks at the direction alone", "growth = 2 * toward + squares", "growth = 2 * toward"),
    thinning("a step counts once where it counts twice", "growth = 2 * toward + squares", "growth = toward + squares"),
    thinning("a draw may be kept again and again", "left[best] = False", "left[best] = True"),
    thinning("features are not centred", "centred = gram - means - means[:, None] + means.mean()", "centred = gram - means.mean()"),
    thinning("the distance is of the sum", "distances.append(square**0.5 / count)", "distances.append(square**0.5)"),
    thinning(
        "statistics are those of the first draws",
        "take(value) for key, value in draws.statistics",
        "value[: len(index)] for key, value in draws.statistics",
    ),
    # parts of a posterior
    consensus("weights are covariances", "precisions = torch.linalg.inv(covariances)\n    return", "precisions = covariances\n    return"),
    consensus(
        "the product is as wide as the mean part",
        "torch.linalg.inv(torch.linalg.inv(covariances).sum(0))",
        "torch.linalg.inv(torch.linalg.inv(covariances).mean(0))",
    ),
    consensus("candidates have a normal law", "standard = normal * (degrees / chi_squared).sqrt()[..., None]", "standard = normal"),
    consensus("weights forget where candidates come from", ".sum(0) - log_density", ".sum(0)"),
    consensus("weights take one part", "torch.stack([part.double() for part in parts]).sum(0)", "parts[0].double()"),
    cluster("seeds do not depend on the piece", 'derived_seed(seed, f"piece {piece}")', "seed"),
    cluster(
        "results come in the order of their arrival", "return [found[piece] for piece in range(len(data))]", "return list(found.values())"
    ),
    cluster("what a piece says on a worker is lost", "for remark in remarks:", "for remark in []:"),
    cluster(
        "a piece that ends every worker is tried for ever",
        "if losses[piece] > LOSSES or isinstance(error, distributed.KilledWorker):",
        "if losses[piece] > 9:",
    ),
    cluster(
        "a cluster without workers is waited for in silence",
        "except TimeoutError as error:\n        raise RuntimeError(",
        "except ZeroDivisionError as error:\n        raise RuntimeError(",
    ),
    cluster(
        "data are sent once for each piece", "key = id(data[piece])\n        if key not in held:", "key = id(data[piece])\n        if True:"
    ),
]
