"""The built site's search answers what people ask in public threads, by two to four
words of the question. ``make test`` builds the site first.
"""

import asyncio
import re

import pytest
from playwright.async_api import async_playwright

from tests.book.test_site import SITE, hits, places
from tools import editions

# What is asked, by somebody who had not read the book, and the pages, or the sections
# of long ones, that answer.
RECIPES, NETWORKS = "practice/recipes", "practice/recipes_networks"
WRONG, LAYER = "practice/when_it_goes_wrong", "practice/my_layer"
MEAN, SAVE = f"{WRONG}#the-sum-or-the-mean", f"{RECIPES}#save"
MINIBATCHES, NUTS = f"{RECIPES}#pass-minibatches", f"{RECIPES}#nuts-and-hmc"
# Public threads, each by a few words of its question.
THREADS = {
    "henripal/sgld #2": ("sgld scaling learning rate", MEAN),
    "JavierAntoran/Bayesian-Neural-Networks #17": (
        "scaling langevin noise",
        "tutorial/langevin",
    ),
    "ChunyuanLI/pSGLD #2": ("psgld noise scaled Ntrain", MEAN),
    "ChunyuanLI/pSGLD #3": ("learning rate annealing", "further/falling_steps"),
    "blei-lab/edward #722": ("sgld noise variance", "tutorial/langevin"),
    "blei-lab/edward #886": ("sghmc full data minibatch", MINIBATCHES),
    "izmailovpavel/understandingbdl #24": ("sgld optimizer noise missing", MEAN),
    "ruqizhang/csgmcmc #1": ("csgmcmc noise_loss", "studies/cyclical_networks"),
    "henripal/sgld #1": ("sgld prior dropped", MEAN),
    "automl/pybnn #4": ("friction learning rate alpha", "tutorial/sghmc"),
    "TurboFreeze/sghmc #2": ("sghmc noise 2(C-B)", "tutorial/sghmc"),
    "TuringLang/AdvancedHMC.jl #428": ("sghmc gradient old position", "tutorial/sghmc"),
    "realcrane/3D-student-splatting #6": ("sghmc mdecay clipped", "tutorial/sghmc"),
    "RajDandekar/MSML21_BayesianNODE #3": (
        "sgld choose step parameters",
        "practice/tuning",
    ),
    "fregu856/evaluating_bdl #4": ("bnn prior alpha", f"{WRONG}#which-prior"),
    "normal-computing/posteriors #85": (
        "no variability samples",
        f"{WRONG}#all-samples-predict-the-same",
    ),
    "TuringLang/Turing.jl #327": ("sgld step size schedule", "further/falling_steps"),
    "pyro-ppl/numpyro #928": ("nuts fixed subsample", NUTS),
    "pyro-ppl/numpyro #1293": ("nuts minibatch", NUTS),
    "pyro-ppl/numpyro #1294": ("subsample local variables", f"{RECIPES}#discrete"),
    "pyro-ppl/numpyro #2075": ("numpyro sgmcmc", RECIPES),
    "pyro-ppl/numpyro #950": ("pyro sgld model", f"{RECIPES}#a-pyro-program"),
    "pyro-ppl/numpyro #417": ("consensus monte carlo", "practice/step_cost"),
    "pymc-devs/pymc #1958": ("sgld detailed balance", "tutorial/langevin"),
    "TuringLang/Turing.jl #2270": ("pass minibatches sampler", MINIBATCHES),
    "TuringLang/AdvancedHMC.jl #60": ("hmc minibatch gradient", "tutorial/sghmc"),
    "hamiltorch #25": ("sghmc nn.Module", f"{NETWORKS}#sghmc"),
    "tensorflow/probability #292": ("hmc bnn bad mse", f"{WRONG}#the-error-mse"),
    "pyro-ppl/numpyro #1397": ("resume mcmc pyro", SAVE),
    "pyro-ppl/numpyro #1308": ("save mcmc state", SAVE),
    "pyro-ppl/numpyro #1100": ("continue sampling", SAVE),
    "pymc-devs/mcbackend #109": ("resume after time limit", SAVE),
    "pyro-ppl/pyro #3040": ("nuts slow few parameters", f"{WRONG}#nuts-is-slow"),
    "pyro-ppl/numpyro #1884": ("pyro vs numpyro nuts", "practice/what_should_i_use"),
    "pyro-ppl/pyro #1532": ("nuts speed", "practice/what_should_i_use"),
    "pyro-ppl/pyro #1706": ("slow mixing float32", f"{WRONG}#dtype"),
    "pyro-ppl/pyro #1973": ("hmc warmup step size", "practice/tuning_hmc"),
    "pyro-ppl/pyro #1470": ("acceptance below 1%", "practice/tuning_hmc"),
    "NeuroBayes #35": ("effective sample size weights", f"{WRONG}#r-r-hat"),
    "fortuna #68": ("frozen parameters memory", f"{NETWORKS}#pretrained"),
    "izmailovpavel/bnn_covariate_shift #3": (
        "hmc reference samples bnn",
        "studies/reference_posteriors",
    ),
    "devinterp #55": ("negative llc", f"{WRONG}#a-local-learning-coefficient"),
    "SGMCMCJax #7": ("test biased sampler", "practice/which_library"),
    "arXivTimes #1570": ("cold posterior augmentation", f"{NETWORKS}#a-dataloader"),
}
# What somebody with a model types.
QUESTIONS = {
    "resnet batchnorm": f"{NETWORKS}#batch-norm",
    "lstm sequences": f"{LAYER}#lstm",
    "CUDA out of memory": f"{WRONG}#out-of-memory",
    "loss is nan": f"{WRONG}#it-diverges",
    "overconfident network": f"{NETWORKS}#temperature-scaling",
    "conformal prediction": "practice/what_should_i_use",
    "laplace-torch": f"{NETWORKS}#laplace",
    "stan divergences": f"{WRONG}#divergent",
    "hierarchical non-centered": f"{RECIPES}#a-pyro-program",
    "logistic regression million rows": "practice/what_should_i_use",
    "missing values": f"{LAYER}#missing-values",
    "huggingface lora": NETWORKS,
    "PyMC model": f"{RECIPES}#a-model-in",
    "poisson regression counts": "practice/my_targets#counts",
    "active learning acquisition": f"{NETWORKS}#two-kinds",
    "mixture label switching": f"{WRONG}#the-labels-switch",
    "bimodal posterior stuck": f"{WRONG}#a-chain-never-moves",
    "r-hat too high": f"{WRONG}#r-r-hat",
    "ood detection": f"{NETWORKS}#strange-inputs",
    "dataloader shuffle augmentation": f"{NETWORKS}#a-dataloader",
}
LEAST = {"threads": 40, "questions": 18}  # of 44, of 20


def section(hit):
    """The section of a place, which may be an entry of the index inside of it."""
    page, _, name = hit.partition("#")
    if name.startswith("index-"):
        before = (SITE / f"{page}.html").read_text().partition(f'id="{name}"')[0]
        name = re.findall(r'<section [^>]*id="([^"]+)"', before)[-1]
    return f"{page}#{name}".removeprefix("book/")


@pytest.mark.parametrize(
    ("kind", "asked"),
    [("threads", list(THREADS.values())), ("questions", list(QUESTIONS.items()))],
)
def test_questions_are_answered_among_the_first_three(kind, asked):
    assert len(asked) == {"threads": 44, "questions": 20}[kind]
    missed = {
        words: found[:3]
        for (words, answer), found in zip(
            asked, places(*(words for words, _ in asked)), strict=True
        )
        if not any(section(hit).startswith(answer) for hit in found[:3])
    }
    assert len(asked) - len(missed) >= LEAST[kind], missed


def test_a_word_that_no_page_has_hides_no_page():
    both, one, nothing = hits("funnel qwertzuiop", "funnel", "qwertzuiop")
    assert set(both) == set(one) != set() == set(nothing)


@pytest.mark.browser
@pytest.mark.skipif(editions.CHROMIUM is None, reason="no Chromium is installed")
def test_a_browser_shows_the_section_from_a_file():
    async def look():
        async with async_playwright() as playwright:
            browser = await playwright.chromium.launch(
                executable_path=editions.CHROMIUM, args=["--no-sandbox"], timeout=0
            )
            page = await browser.new_page()
            page.set_default_timeout(0)
            words = "search.html?q=samples+all+predict+the+same+qwertzuiop"
            await page.goto(f"{(SITE / 'search.html').as_uri()[:-11]}{words}")
            link = page.locator("#search-results li a").first
            await link.wait_for()
            return await link.get_attribute("href"), await link.text_content()

    address, title = asyncio.run(look())
    place = section(address.replace(".html", ""))
    assert place.startswith(f"{WRONG}#all-samples-predict-the-same")
    assert "all samples predict the same" in title.lower()
