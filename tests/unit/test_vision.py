"""Looking at pictures that Pillow draws."""

from __future__ import annotations

import pytest
from PIL import Image, ImageDraw

from ui_backends import vision
from ui_backends.base import Region
from ui_backends.vision import Answer, Template, TemplateSet

LIGHT, DARK = (240, 240, 240), (30, 30, 30)


def canvas(size: tuple[int, int] = (300, 200), colour: tuple[int, int, int] = LIGHT) -> Image.Image:
    return Image.new("RGB", size, colour)


def entry(text: str = "", caret: int | None = None) -> Image.Image:
    """A text entry with a caret of two pixels at a column."""
    picture = canvas((300, 30))
    draw = ImageDraw.Draw(picture)
    draw.text((5, 8), text, fill=(0, 0, 0))
    if caret is not None:
        draw.rectangle((caret, 4, caret + 1, 25), fill=(0, 0, 0))
    return picture


def badge(colour: tuple[int, int, int], shape: str = "cross", ground: tuple[int, int, int] = LIGHT):
    """A 24 pixel sign on a ground."""
    picture = canvas((24, 24), ground)
    draw = ImageDraw.Draw(picture)
    if shape == "cross":
        draw.line((3, 3, 20, 20), fill=colour, width=4)
        draw.line((3, 20, 20, 3), fill=colour, width=4)
    else:
        draw.ellipse((3, 3, 20, 20), outline=colour, width=4)
    return picture


def screen_with(*signs: tuple[Image.Image, tuple[int, int]], ground=LIGHT) -> Image.Image:
    screen = canvas(colour=ground)
    ImageDraw.Draw(screen).rectangle((0, 0, 40, 199), fill=(90, 120, 200))
    for picture, place in signs:
        screen.paste(picture, place)
    return screen


RED, GREEN = (200, 20, 20), (20, 160, 20)


class TestChanged:
    def test_a_blinking_caret_is_no_change(self) -> None:
        assert not vision.changed(entry("hello", caret=60), entry("hello"))
        assert not vision.changed(entry(), entry(caret=5))

    def test_a_moved_caret_is_no_change(self) -> None:
        assert not vision.changed(entry("hello", caret=60), entry("hello", caret=150))

    @pytest.mark.parametrize("column", range(3, 60))
    def test_a_caret_that_blinks_over_text_is_no_change(self, column: int) -> None:
        assert not vision.changed(entry("hill 好 dd", caret=column), entry("hill 好 dd"))
        assert not vision.changed(entry("hill 好 dd"), entry("hill 好 dd", caret=column))

    def test_a_caret_that_moved_to_another_line_is_no_change(self) -> None:
        before, after = canvas((300, 60)), canvas((300, 60))
        ImageDraw.Draw(before).rectangle((5, 4, 6, 20), fill=DARK)
        ImageDraw.Draw(after).rectangle((5, 30, 6, 46), fill=DARK)
        assert not vision.changed(before, canvas((300, 60)))
        assert not vision.changed(canvas((300, 60)), after)

    @pytest.mark.parametrize("text", ["hello", "w", "l", "1", ".", "i", "....", "ll", "好"])
    @pytest.mark.parametrize("carets", [(None, None), (3, None), (3, 60), (None, 60)])
    def test_text_is_a_change_whatever_the_caret_does(
        self, text: str, carets: tuple[int | None, int | None]
    ) -> None:
        assert vision.changed(entry(caret=carets[0]), entry(text, caret=carets[1]))

    def test_a_selection_is_a_change(self) -> None:
        after = entry("hello")
        ImageDraw.Draw(after).rectangle((5, 5, 60, 25), fill=(50, 80, 200))
        assert vision.changed(entry("hello"), after)

    def test_noise_below_the_tolerance_is_none(self) -> None:
        assert not vision.changed(canvas(), canvas(colour=(235, 245, 240)))
        assert vision.changed(canvas(), canvas(colour=(220, 240, 240)))

    def test_another_size_is_a_change(self) -> None:
        assert vision.changed(canvas((300, 30)), canvas((300, 31)))
        assert vision.difference(canvas((300, 30)), canvas((20, 10))) == Region(0, 0, 20, 10)


class TestSame:
    def test_same_and_the_place_of_the_difference(self) -> None:
        before, after = canvas(), canvas()
        assert vision.same(before, after)
        assert vision.difference(before, after) is None
        ImageDraw.Draw(after).rectangle((10, 20, 29, 24), fill=DARK)
        assert not vision.same(before, after)
        assert vision.difference(before, after) == Region(10, 20, 20, 5)

    def test_a_single_pixel_counts(self) -> None:
        after = canvas()
        after.putpixel((299, 199), DARK)
        assert vision.difference(canvas(), after) == Region(299, 199, 1, 1)


class TestBlank:
    @pytest.mark.parametrize("colour", [(0, 0, 0), (255, 255, 255), (10, 200, 90)])
    def test_one_colour(self, colour: tuple[int, int, int]) -> None:
        assert vision.blank(canvas(colour=colour))

    def test_anything_on_it(self) -> None:
        picture = canvas(colour=(0, 0, 0))
        picture.putpixel((100, 100), (255, 255, 255))
        assert not vision.blank(picture)
        assert not vision.blank(entry("x"))


class TestFind:
    def test_yes_with_place_and_score(self) -> None:
        screen = screen_with((badge(RED), (100, 80)))
        verdict = vision.find(screen, [Template("online", badge(RED))])
        assert verdict.answer is Answer.YES
        assert verdict.best is not None
        assert verdict.best.region == Region(100, 80, 24, 24)
        assert verdict.best.score > 0.99

    def test_no(self) -> None:
        verdict = vision.find(screen_with(), [Template("online", badge(RED))])
        assert verdict.answer is Answer.NO

    def test_a_blank_screen_is_unknown(self) -> None:
        templates = [Template("online", badge(RED)), Template("black", canvas((9, 9), (0, 0, 0)))]
        verdict = vision.find(canvas(colour=(0, 0, 0)), templates)
        assert verdict.answer is Answer.UNKNOWN

    def test_a_blank_region_of_a_full_screen_is_unknown(self) -> None:
        screen = screen_with((badge(RED), (100, 80)))
        verdict = vision.find(
            screen, [Template("online", badge(RED))], region=Region(200, 100, 60, 60)
        )
        assert verdict.answer is Answer.UNKNOWN

    def test_a_template_that_does_not_fit_is_unknown(self) -> None:
        verdict = vision.find(
            screen_with(), [Template("online", badge(RED))], region=Region(0, 0, 10, 10)
        )
        assert (verdict.answer, verdict.best) == (Answer.UNKNOWN, None)
        assert vision.find(screen_with(), []).answer is Answer.UNKNOWN

    def test_two_names_that_look_alike_are_unknown(self) -> None:
        nearly = badge(RED)
        nearly.putpixel((0, 0), (200, 200, 200))
        verdict = vision.find(
            screen_with((badge(RED), (100, 80))),
            [Template("online", badge(RED)), Template("away", nearly)],
        )
        assert verdict.answer is Answer.UNKNOWN
        assert [m.name for m in verdict.matches] == ["online", "away"]

    def test_the_same_name_twice_is_no_rival(self) -> None:
        verdict = vision.find(
            screen_with((badge(RED), (100, 80))),
            [Template("online", badge(RED)), Template("online", badge(RED), theme="other")],
        )
        assert verdict.answer is Answer.YES

    def test_a_damaged_sign_is_unknown_not_no(self) -> None:
        damaged = badge(RED)
        ImageDraw.Draw(damaged).rectangle((14, 0, 23, 9), fill=LIGHT)
        verdict = vision.find(screen_with((damaged, (100, 80))), [Template("online", badge(RED))])
        assert verdict.answer is Answer.UNKNOWN

    def test_colour_distinguishes(self) -> None:
        templates = [Template("red", badge(RED)), Template("green", badge(GREEN))]
        for colour, name in ((RED, "red"), (GREEN, "green")):
            verdict = vision.find(screen_with((badge(colour), (60, 50))), templates)
            assert verdict.answer is Answer.YES
            assert verdict.best is not None
            assert verdict.best.name == name

    def test_a_plain_template_is_compared_by_colour(self) -> None:
        blue = Template("blue", canvas((20, 20), (90, 120, 200)))
        black = Template("black", canvas((20, 20), (0, 0, 0)))
        assert vision.find(screen_with(), [blue]).answer is Answer.YES
        assert vision.find(screen_with(), [black]).answer is not Answer.YES

    def test_a_region_bounds_where_it_looks_and_places_are_the_whole_pictures(self) -> None:
        screen = screen_with((badge(RED), (50, 20)), (badge(RED), (200, 150)))
        around = vision.around(Region(200, 150, 24, 24), 10, screen.size)
        verdict = vision.find(screen, [Template("sign", badge(RED))], region=around)
        assert verdict.best is not None
        assert verdict.best.region == Region(200, 150, 24, 24)


class TestLooks:
    def signs(self) -> TemplateSet:
        double = badge(RED).resize((48, 48), Image.Resampling.NEAREST)
        return TemplateSet(
            [
                Template("online", badge(RED)),
                Template("offline", badge(RED, "ring")),
                Template("online", badge(RED, ground=DARK), theme="dark"),
                Template("offline", badge(RED, "ring", DARK), theme="dark"),
                Template("online", double, scale=2.0),
            ]
        )

    @pytest.mark.parametrize(
        ("sign", "ground", "look", "name"),
        [
            (badge(RED), LIGHT, (1.0, "light"), "online"),
            (badge(RED, "ring"), LIGHT, (1.0, "light"), "offline"),
            (badge(RED, ground=DARK), DARK, (1.0, "dark"), "online"),
            (
                badge(RED).resize((48, 48), Image.Resampling.NEAREST),
                LIGHT,
                (2.0, "light"),
                "online",
            ),
        ],
    )
    def test_the_look_is_recognised(self, sign, ground, look, name) -> None:
        screen = screen_with((sign, (120, 90)), ground=ground)
        signs = self.signs()
        assert signs.look_of(screen) == look
        verdict = signs.find(screen, look=look)
        assert verdict.answer is Answer.YES
        assert verdict.best is not None
        assert verdict.best.name == name

    def test_an_unknown_look_is_none(self) -> None:
        assert self.signs().look_of(screen_with()) is None
        assert self.signs().find(screen_with(), look=(3.0, "light")).answer is Answer.UNKNOWN


def test_around_stays_inside() -> None:
    assert vision.around(Region(5, 5, 10, 10), 10, (100, 18)) == Region(0, 0, 25, 18)
