"""Numbers in the form in which they are written on paper."""

import math

SUPERSCRIPTS = str.maketrans("−0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def in_words(number: float, digits: int = 6) -> str:
    """Write a number as it is written on paper.

    Example:
        >>> in_words(-0.25), in_words(1e-9), in_words(3.2e7, 1)
        ('−0.25', '10⁻⁹', '3·10⁷')
    """
    mantissa, _, power = f"{number:.{digits}g}".replace("-", "−").partition("e")
    if not power:
        return mantissa
    ten = (
        "10"
        + power[0].replace("+", "").translate(SUPERSCRIPTS)
        + power[1:].lstrip("0").translate(SUPERSCRIPTS)
    )
    return ten if mantissa == "1" else f"{mantissa}·{ten}"


def to_the_digits_of(tolerance: float, number: float) -> str:
    """Write a number with one digit more than the first digit of its possible error."""
    return in_words(
        round(float(number), 1 - math.floor(math.log10(tolerance)))
        if tolerance > 0
        else number
    )


def with_the_digits_of(number: float, unsure: float | None, digits: int) -> str:
    """Write a number with the digits that its error supports, or with so many digits if
    the error is None.

    Example:
        >>> with_the_digits_of(1.40361, 0.002, 4), with_the_digits_of(7000.4, 30, 4)
        ('1.404', '7,000')
    """
    if unsure and 0 < unsure < math.inf and math.isfinite(number):
        places = -math.floor(math.log10(unsure))
        return f"{round(number, places) + 0.0:,.{max(0, places)}f}".replace("-", "−")
    return in_words(number, digits)
