"""Figures for slides: copies of the built book's, by page and label."""

from tools import figures


def test_each_figure_is_copied_under_its_page_and_label(tmp_path):
    site, target = tmp_path / "html", tmp_path / "figures"
    (site / "book" / "part").mkdir(parents=True)
    (site / "_images").mkdir()
    (site / "_images" / "0f3a.png").write_bytes(b"one")
    (site / "_images" / "logo.svg").write_bytes(b"two")
    (site / "book" / "part" / "page.html").write_text(
        '<img src="../../_images/logo.svg"/><figure class="align" id="fig-a">'
        '<a href="x"><img src="../../_images/0f3a.png"/></a></figure>'
    )
    made = figures.export(site, target)
    assert [path.name for path in made] == ["page-fig-a.png"]
    assert [path.read_bytes() for path in target.iterdir()] == [b"one"]
