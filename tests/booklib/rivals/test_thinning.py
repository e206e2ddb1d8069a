"""Thinning and herding against brute force, and laws that are known exactly."""

import pytest
import torch

from booklib.rivals.thinning import herd, thin
from sgmc.door.draws import Draws

DOUBLE = torch.float64


def features_of(generator, number=12, dim=3):
    return torch.randn(number, dim, generator=generator, dtype=DOUBLE).exp()


def draws_of(features):
    return Draws(features[:, None])


@pytest.mark.parametrize("chains", [1, 3])
def test_every_choice_is_the_best_of_those_left(chains, generator):
    """Against trying all of them with explicit features; the distance is that of the
    plain means.
    """
    features = features_of(generator)
    kept = herd(Draws(features.unflatten(0, (-1, chains))), 12, features @ features.mT)
    mean, chosen = features.mean(0), []
    for number in range(1, 13):
        left = [place for place in range(12) if place not in chosen]
        distances = [
            float((features[[*chosen, place]].mean(0) - mean).norm()) for place in left
        ]
        chosen.append(left[distances.index(min(distances))])
        assert float(kept.statistics["distance"][number - 1, 0]) == pytest.approx(
            min(distances), abs=1e-7
        )
    # the last one is what is left
    assert kept.statistics["index"][:-1, 0].tolist() == chosen[:-1]
    assert torch.equal(
        kept.samples[:, 0], features[kept.statistics["index"][:, 0]]
    ) and kept.samples.shape == (12, 1, 3)


def test_what_the_features_do_not_hold_is_lost():
    """Of equidistant draws whose only feature is the value the innermost are kept:
    their mean is exact, their variance far too small.
    """
    values = torch.arange(-50.0, 51.0, dtype=DOUBLE)[:, None]
    linear = herd(draws_of(values), 21, values @ values.mT)
    assert sorted(linear.samples.flatten().tolist()) == list(range(-10, 11))
    # of all it is 50·51/3
    assert float(linear.samples.var(correction=0)) == pytest.approx(10 * 11 / 3)
    both = torch.cat([values / 50, (values / 50).square()], -1)
    squares = herd(draws_of(values), 21, both @ both.mT)
    assert float(squares.samples.var(correction=0)) == pytest.approx(
        50 * 51 / 3, rel=0.05
    )


def test_thinned_draws_are_evenly_spaced_over_all_chains():
    draws = Draws(
        torch.arange(12.0).view(6, 2, 1),
        {"energy": torch.arange(12.0).view(6, 2)},
        kernel="SGLD",
        thinning=3,
    )
    kept = thin(draws, 4)
    assert kept.samples.flatten().tolist() == [0, 5, 6, 11] and kept.samples.shape == (
        4,
        1,
        1,
    )
    assert torch.equal(
        kept.statistics["energy"], kept.samples[..., 0]
    ) and kept.statistics["index"].flatten().tolist() == [0, 5, 6, 11]
    assert (
        torch.equal(thin(draws, 12).samples.flatten(), torch.arange(12.0))
        and kept.kernel == "thin(4) of SGLD"
    )
    several = Draws({"a": draws.samples, "b": 2 * draws.samples})
    assert thin(several, 1).samples["b"].flatten().tolist() == [12]


def test_a_gram_in_single_precision_will_do(generator):
    features = features_of(generator, 30).float()
    single = herd(draws_of(features), 5, features @ features.mT)
    exact = herd(draws_of(features), 5, features.double() @ features.double().mT)
    assert torch.equal(single.samples, exact.samples)


@pytest.mark.parametrize("number", [100, 25, 10])
def test_draws_of_all_chains_are_kept_where_their_number_divides_the_stride(number):
    """Chains in four places, whose mean is 1.5."""
    draws = Draws(torch.arange(4.0).repeat(100, 1)[..., None])
    kept = thin(draws, number)
    counts = kept.samples.flatten().long().bincount(minlength=4)
    assert counts.max() - counts.min() <= 1
    places = kept.statistics["index"].flatten()
    assert len(places.unique()) == number
    spaces = (places // 4).diff()
    assert spaces.max() - spaces.min() <= 1
