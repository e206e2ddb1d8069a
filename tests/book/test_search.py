"""The built site's search answers what people ask in public threads, by two to four
words of the question. ``make test`` builds the site first.
"""

import asyncio

import pytest
from playwright.async_api import async_playwright

from tests.book.test_site import SITE, hits
from tools import editions

# Of public threads what was asked, and the pages that answer.
WRONG = "practice/when_it_goes_wrong"
THREADS = {
    "henripal/sgld #2": ("scaling the learning rate", [WRONG]),
    "JavierAntoran/Bayesian-Neural-Networks #17": (
        "scaling langevin noise",
        ["tutorial/langevin", WRONG],
    ),
    "ChunyuanLI/pSGLD #2": ("noise scaled by Ntrain", [WRONG, "tutorial/langevin"]),
    "ChunyuanLI/pSGLD #3": (
        "learning rate annealing",
        ["further/falling_steps"],
    ),
    "blei-lab/edward #722": ("SGLD variance noise", ["tutorial/langevin", WRONG]),
    "blei-lab/edward #886": (
        "SGHMC minibatch",
        ["tutorial/sghmc", "tutorial/minibatch_noise"],
    ),
    "izmailovpavel/understandingbdl #24": (
        "SGLD noise N/n",
        [WRONG, "tutorial/langevin", "further/price"],
    ),
    "ruqizhang/csgmcmc #1": (
        "cyclical noise learning rate",
        ["further/cyclical", "studies/cyclical_networks"],
    ),
    "henripal/sgld #1": ("weight decay prior", [WRONG, "practice/recipes_networks"]),
    "automl/pybnn #4": (
        "friction learning rate alpha",
        ["tutorial/sghmc", "appendix/glossary"],
    ),
    "TurboFreeze/sghmc #2": (
        "SGHMC noise estimate friction",
        ["tutorial/sghmc", "tutorial/estimating_the_noise"],
    ),
    "TuringLang/AdvancedHMC.jl #428": (
        "gradient new position",
        ["tutorial/sghmc", "tutorial/naive_sghmc"],
    ),
    "realcrane/3D-student-splatting #6": (
        "momentum decay above 1",
        ["tutorial/sghmc", "appendix/messages", WRONG],
    ),
    "RajDandekar/MSML21_BayesianNODE #3": (
        "choosing SGLD step size",
        ["practice/tuning", "tutorial/langevin"],
    ),
    "fregu856/evaluating_bdl #4": (
        "prior of the weights",
        ["practice/recipes_networks", WRONG],
    ),
    "normal-computing/posteriors #85": ("samples no variability", [WRONG]),
    "TuringLang/Turing.jl #327": (
        "SGLD step size schedule",
        ["further/falling_steps"],
    ),
    "pyro-ppl/numpyro #928": (
        "NUTS subsample plate",
        ["practice/recipes", "appendix/messages", "further/minibatch_metropolis"],
    ),
    "pyro-ppl/numpyro #1293": (
        "HMC minibatch subsampling",
        ["tutorial/naive_sghmc", "further/minibatch_metropolis"],
    ),
    "pyro-ppl/numpyro #1294": (
        "subsampling local variables",
        ["practice/recipes", "practice/my_data"],
    ),
    "pyro-ppl/numpyro #2075": ("SGLD NumPyro model", ["practice/recipes"]),
    "pyro-ppl/numpyro #950": ("SGHMC Pyro program", ["practice/recipes"]),
    "pyro-ppl/numpyro #417": (
        "consensus Monte Carlo",
        ["practice/step_cost", "practice/recipes"],
    ),
    "pymc-devs/pymc #1958": (
        "SGLD detailed balance",
        ["tutorial/markov_chains", "further/minibatch_metropolis"],
    ),
    "TuringLang/Turing.jl #2270": (
        "minibatches data loader",
        ["practice/recipes", "tutorial/minibatch_noise"],
    ),
    "TuringLang/AdvancedHMC.jl #60": (
        "stochastic gradient HMC",
        ["tutorial/sghmc", "tutorial/naive_sghmc"],
    ),
    "hamiltorch #25": ("SGHMC nn.Module", ["practice/recipes_networks"]),
    "tensorflow/probability #292": (
        "HMC network start chain",
        ["practice/recipes_networks", WRONG, "tutorial/digits"],
    ),
    "pyro-ppl/numpyro #1397": ("resume checkpoint", [WRONG, "practice/recipes"]),
    "pyro-ppl/numpyro #1308": ("save warm-up state", ["practice/recipes"]),
    "pyro-ppl/numpyro #1100": ("time limit", [WRONG, "practice/recipes"]),
    "pymc-devs/mcbackend #109": ("interrupted run resume", [WRONG]),
    "pyro-ppl/pyro #3040": ("NUTS is slow", [WRONG]),
    "pyro-ppl/numpyro #1884": (
        "NumPyro NUTS speed",
        ["practice/step_cost", "practice/what_should_i_use", WRONG],
    ),
    "pyro-ppl/pyro #1532": ("slow NUTS", [WRONG]),
    "pyro-ppl/pyro #1706": ("float32 slow mixing", [WRONG]),
    "pyro-ppl/pyro #1973": (
        "HMC warm-up step size",
        ["practice/tuning_hmc", "tutorial/hamiltonian_monte_carlo"],
    ),
    "pyro-ppl/pyro #1470": ("low acceptance rate", [WRONG, "practice/tuning_hmc"]),
    "NeuroBayes #35": ("effective sample size weights", [WRONG]),
    "fortuna #68": ("frozen parameters", ["practice/recipes_networks", WRONG]),
    "izmailovpavel/bnn_covariate_shift #3": (
        "reference posterior samples",
        ["studies/reference_posteriors", "studies/fidelity"],
    ),
    "devinterp #55": ("local learning coefficient", [WRONG]),
    "SGMCMCJax #7": (
        "test a sampler",
        ["practice/which_library"],
    ),
    "arXivTimes #1570": (
        "cold posterior augmentation",
        ["practice/recipes_networks"],
    ),
}
LEAST = 34  # of 44


def test_threads_are_answered_among_the_first_three():
    asked = [words for words, _ in THREADS.values()]
    assert len(asked) == 44
    assert all(2 <= len(words.split()) <= 4 for words in asked)
    missed = {
        (thread, words): found[:3]
        for (thread, (words, pages)), found in zip(
            THREADS.items(), hits(*asked), strict=True
        )
        if not {hit.removeprefix("book/") for hit in found[:3]} & set(pages)
    }
    assert len(THREADS) - len(missed) >= LEAST, missed


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
    assert address.startswith(f"book/{WRONG}.html#all-samples-predict-the-same")
    assert "All samples predict the same" in title
