"""Columns of paths of image files: pixels, thumbnails, and files that cannot be read."""

import os
import re
import sys
from pathlib import Path

import numpy as np
import pytest

from looselabels.command.features import Features
from looselabels.command.images import (
    SIDE,
    Images,
    folder_of,
    has_images,
    image_column,
    read_image,
    read_thumbnails,
)
from looselabels.command.tables import TableError, read_table
from tests.command.calls import QUICK, called, pd, read_csv

Image = pytest.importorskip("PIL.Image")

pytestmark = pytest.mark.usefixtures("folder")  # each test works in an empty folder

COLORS = {"apple": (200, 30, 30), "leaf": (30, 200, 30)}


def draw(path, color, shape=(12, 20), seed=0):
    """Write an image of one color and some noise."""
    noise = np.random.default_rng(seed).integers(-20, 20, (*shape, 3))
    path = Path(path)
    path.parent.mkdir(exist_ok=True, parents=True)
    Image.fromarray((np.array(color) + noise).astype(np.uint8)).save(path)


def things(n_rows=40, file="things.csv", folder="photos"):
    """Write a table of images of two colors, every tenth with the wrong label."""
    rows = []
    for i in range(n_rows):
        name = list(COLORS)[i % 2]
        draw(Path(file).parent / folder / f"{i}.png", COLORS[name], seed=i)
        label = name if i % 10 else list(COLORS)[1 - i % 2]
        rows.append({"photo": f"{folder}/{i}.png", "kind": label})
    frame = pd.DataFrame(rows)
    frame.to_csv(file, index=False)
    return frame


def paths(*names):
    return pd.DataFrame({"photo": list(names)})


def colored(array, path="a.png", **options):
    """Write an array as an image file, and return it as it is read."""
    Image.fromarray(array).save(path, **options)
    return read_image(Path(path), 64)


# ------------------------------------------------------------------------------------------ reading


def test_pixels_are_means_of_the_image():
    array = np.zeros((32, 64, 3), np.uint8)
    array[:, 32:] = (10, 20, 30)
    Image.fromarray(array).save("a.png")
    small = read_image(Path("a.png"), 4, square=True)
    assert small.shape == (4, 4, 3)
    assert (small[:, :2] == 0).all()
    assert (small[:, 2:] == (10, 20, 30)).all()
    assert read_image(Path("a.png"), 16).shape == (8, 16, 3)
    assert read_image(Path("a.png"), 16, color=False).shape == (8, 16)


def test_transparent_pixels_are_white():
    array = np.zeros((8, 8, 4), np.uint8)
    array[:4, :, 3] = 255
    found = colored(array)
    assert (found[:4] == 0).all()
    assert (found[4:] == 255).all()
    palette = Image.new("P", (4, 4), 1)
    palette.putpalette([0, 0, 0, 9, 9, 9])
    palette.save("p.png", transparency=1)
    assert (read_image(Path("p.png"), 4) == 255).all()


def test_sixteen_bits_are_scaled_not_cut():
    found = colored(np.array([[0, 32768], [65535, 256]], np.uint16))
    np.testing.assert_array_equal(found[:, :, 0], [[0, 128], [255, 1]])


def test_images_are_rotated_as_their_metadata_say():
    array = np.zeros((16, 32, 3), np.uint8)
    array[:, :16] = 255  # white on the left
    exif = Image.Exif()
    exif[0x0112] = 6  # to be turned by 90° clockwise: white on top
    found = colored(array, "a.png", exif=exif)
    assert found.shape == (32, 16, 3)
    assert (found[:16] == 255).all()
    assert (found[16:] == 0).all()


def test_of_an_animation_the_first_image_is_used():
    frames = [Image.new("RGB", (8, 8), color) for color in ("white", "black")]
    frames[0].save("a.gif", save_all=True, append_images=frames[1:])
    assert (read_image(Path("a.gif"), 8) == 255).all()


@pytest.mark.parametrize("suffix", ["png", "jpg", "jpeg", "bmp", "gif", "webp", "PNG"])
def test_all_formats_are_read(suffix):
    Image.new("RGB", (8, 8), (200, 100, 0)).save(f"a.{suffix}")
    assert has_images(paths(f"a.{suffix}"), "photo")
    np.testing.assert_allclose(read_image(Path(f"a.{suffix}"), 8)[0, 0], (200, 100, 0), atol=4)


# ----------------------------------------------------------------------------------------- features


def test_a_table_of_paths_becomes_pixels():
    things()
    frame = read_table("things.csv")
    features, X = Features.fit_transform(frame, label="kind")
    assert features.used == ["photo"]
    assert X.shape == (40, 3 * SIDE**2)
    assert len(set(features.feature_names)) == X.shape[1]
    assert 0 <= X.min() < X.max() <= 1
    expected = read_image(Path("photos/7.png"), SIDE, square=True) / 255
    np.testing.assert_allclose(X[7], expected.ravel(), rtol=1e-6)
    assert "'photo': 40 images read as 16 × 16 pixels in color" in features.notes[0]


def test_gray_images_have_one_channel_as_have_later_ones_in_color():
    for i in range(4):
        Image.fromarray(np.full((9, 9), 50 * i, np.uint8)).save(f"{i}.png")
    frame = paths(*(f"{i}.png" for i in range(4)))
    features, X = Features.fit_transform(frame)
    assert X.shape == (4, SIDE**2)
    assert "in gray" in features.notes[0]
    np.testing.assert_array_equal(features.transform(frame), X)
    draw("color.jpg", (200, 0, 0))
    assert features.transform(paths("color.jpg")).shape == (1, SIDE**2)


def test_a_saved_encoder_reads_images_of_another_folder():
    things()
    features, X = Features.fit_transform(read_table("things.csv"), label="kind")
    features.save(".")
    os.mkdir("moved")
    things(file="moved/new.csv")
    frame = read_table("moved/new.csv")
    assert folder_of(frame) == Path("moved")
    for i in range(40):
        os.remove(f"photos/{i}.png")
    np.testing.assert_array_equal(Features.load(".").transform(frame), X)


def test_sizes_of_a_changed_model_are_checked():
    with pytest.raises(ValueError, match="contradict each other"):
        Images("photo", ["a"], 10**9, 3)


def test_an_image_is_read_once_and_an_empty_cell_is_missing(monkeypatch):
    draw("a.png", (0, 0, 200))
    draw("b.png", (200, 0, 0))
    read = []
    monkeypatch.setattr(
        "looselabels.command.images.read_image",
        lambda file, *a, **k: read.append(file.name) or read_image(file, *a, **k),
    )
    X = Features.fit_transform(paths("a.png", None, "b.png", "a.png"))[1]
    assert read == ["a.png", "b.png"]
    assert np.isnan(X[1]).all()
    assert not np.isnan(X[[0, 2, 3]]).any()
    np.testing.assert_array_equal(X[0], X[3])


def test_images_that_do_not_differ_are_ignored():
    for name in "abc":
        Image.new("RGB", (5, 5)).save(f"{name}.png")
    with pytest.raises(TableError, match="'photo': every image looks the same"):
        Features.fit(paths("a.png", "b.png", "c.png"))
    with pytest.raises(TableError, match="'photo': every cell is empty"):
        Features.fit_transform(paths(None, None), image="photo")


# --------------------------------------------------------------------------------------- detection


def test_columns_of_images_are_recognized():
    draw("a.PNG", (0, 0, 0))
    mostly = paths("a.PNG", "b.jpeg", "no image")
    assert has_images(mostly, "photo")  # b.jpeg does not exist, but the first does
    assert not has_images(paths("a.PNG", "one", "two"), "photo")
    assert not has_images(paths("b.png"), "photo")
    assert not has_images(pd.DataFrame({"size": [1.5, 2]}), "size")
    assert not has_images(paths("a\0.png", "x" * 9999 + ".png"), "photo")
    frame = mostly.assign(kind=["a.PNG"] * 3)
    assert image_column(frame, label="photo") == "kind"
    assert image_column(frame, "kind") == "kind"
    with pytest.raises(TableError, match="no column 'foto'"):
        image_column(frame, "foto")
    with pytest.raises(TableError, match="'kind' is the label"):
        image_column(frame, "kind", label="kind")


def test_paths_of_files_that_do_not_exist_are_no_feature():
    frame = pd.DataFrame(
        {"photo": [f"cat/{i % 50}.png" for i in range(100)], "size": np.arange(100) / 7}
    )
    features = Features.fit(frame, columns=None)
    assert features.ignored[0] == ("photo", "it names image files, but 'cat/0.png' is not in .")
    assert "photo" in Features.fit(frame, columns=["photo"]).used  # as text, if asked for
    few = frame.assign(photo=["sun.png", "rain.png"] * 50)  # icons
    assert "photo = sun.png" in Features.fit(few).feature_names


def test_without_pillow_one_line_says_what_to_install(monkeypatch):
    things()
    frame = read_table("things.csv")
    for module in ("PIL", "PIL.Image", "PIL.ImageOps"):
        monkeypatch.setitem(sys.modules, module, None)
    assert image_column(frame) is None
    found = called("audit", "things.csv", "--label", "kind", *QUICK)
    assert found.code == 3
    assert "'photo': it names image files, which need \"looselabels[images]\"" in found.err
    found = called("audit", "things.csv", "--label", "kind", "--image", "photo", *QUICK)
    assert (found.code, found.err.count("\n")) == (2, 1)
    assert 'This needs PIL: pip install "looselabels[images]"' in found.err


# ------------------------------------------------------------------------------ files that are bad


def bad_file(kind):
    """Write a file that is not a usable image."""
    path = Path("photos/0.png")
    if kind == "truncated":
        path.write_bytes(path.read_bytes()[:200])
    elif kind == "text":
        path.write_text("not an image")
    elif kind == "folder":
        path.unlink()
        path.mkdir()
    elif kind == "pipe":
        path.unlink()
        os.mkfifo(path)
    elif kind == "tiff":
        Image.new("RGB", (5, 5)).save(path, format="TIFF")
    else:
        path.unlink()


REASONS = {
    "missing": r"'photos/0.png' does not exist",
    "truncated": r"'photos/0.png' is damaged \(\w+\)",
    "text": r"'photos/0.png' is not an image \(PNG, JPEG, BMP, GIF, WEBP\)",
    "tiff": r"'photos/0.png' is not an image",
    "folder": r"'photos/0.png' is not a file",
    "pipe": r"'photos/0.png' is not a file",
}


@pytest.mark.parametrize("kind", REASONS)
def test_a_few_unreadable_files_are_missing_values_and_a_note(kind):
    things()
    bad_file(kind)
    frame = read_table("things.csv")
    said = f"'photo': 1 of 40 image files in . cannot be read: {REASONS[kind]}"
    with pytest.warns(UserWarning, match=said):
        X = Features.fit_transform(frame, label="kind")[1]
    assert np.isnan(X).any(axis=1).nonzero()[0].tolist() == [0]
    thumbnails = read_thumbnails(frame, "photo", [1, 0])
    assert thumbnails[0].shape == (12, 20, 3)
    assert thumbnails[1] is None


def test_many_unreadable_files_are_an_error_that_names_some():
    things()
    for i in range(10, 20):
        os.remove(f"photos/{i}.png")
    said = (
        "'photo': 10 of 40 image files in . cannot be read: 'photos/10.png' does not exist; "
        "'photos/11.png' does not exist; 'photos/12.png' does not exist; and 7 more. Correct"
    )
    with pytest.raises(TableError, match=re.escape(said)):
        Features.fit(read_table("things.csv"), label="kind")


def test_images_with_too_many_pixels_are_not_decoded(monkeypatch):
    things(4)
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 200)  # they have 240
    with pytest.raises(TableError, match="has more than 200 pixels, the limit of Pillow"):
        Features.fit(read_table("things.csv"), label="kind")
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 100)  # an error of Pillow, not a warning
    with pytest.raises(TableError, match="has more than 100 pixels, the limit of Pillow"):
        Features.fit(read_table("things.csv"), label="kind")


def test_a_column_of_numbers_holds_no_images():
    things(4)
    features = Features.fit(read_table("things.csv"), label="kind")
    with pytest.raises(TableError, match="'photo' should hold paths of image files"):
        features.transform(pd.DataFrame({"photo": [1, 2]}))


# ------------------------------------------------------------------------------------- the command


def test_an_audit_of_images_finds_planted_errors_and_shows_them():
    things()
    found = called("audit", "things.csv", "--label", "kind", *QUICK)
    assert found.code == 0, found.err
    assert "Note: Column 'photo': 40 images read as" in found.err
    table = read_csv("things-audit/labels.csv")
    assert (table["suggestion"] != table["kind"]).to_numpy().nonzero()[0].tolist() == [
        0,
        10,
        20,
        30,
    ]
    page = Path("things-audit/report.html").read_text()
    assert page.count("data:image/png;base64,") >= 40


def test_a_model_of_images_predicts_those_of_a_new_table():
    things()
    words = ("--label", "kind", "--image", "photo", *QUICK, "-o", "model")
    assert called("fit", "things.csv", *words).code == 0
    os.mkdir("new")
    for name in COLORS:
        draw(f"new/{name}.jpg", COLORS[name], shape=(50, 30), seed=99)
    Path("new/table.csv").write_text("photo\napple.jpg\nleaf.jpg\n")
    found = called("predict", "model", "new/table.csv")
    assert found.code == 0, found.err
    assert [line.split(",")[1] for line in found.out.splitlines()] == ["class", "apple", "leaf"]
    Path("new/table.csv").write_text("photo\n" + "apple.jpg\n" + "pear.jpg\n")
    found = called("predict", "model", "new/table.csv")
    assert found.code == 3
    assert "1 of 2 image files in new cannot be read: 'pear.jpg' does not exist" in found.err


def test_predict_says_which_files_could_not_be_read():
    things()
    assert called("fit", "things.csv", "--label", "kind", *QUICK, "-o", "model").code == 0
    os.remove("photos/3.png")
    found = called("predict", "model", "things.csv", "-o", "classes.csv")
    assert found.code == 0
    assert "Note: Column 'photo': 1 of 40 image files in . cannot be read" in found.err
    assert len(read_csv("classes.csv")) == 40


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--image", "foto"), "The table has no column 'foto'. Did you mean 'photo'?"),
        (("--image", "kind"), "Column 'kind' is the label; it cannot be the image."),
        (("--image", "size"), "40 of 40 image files in . cannot be read: '1.5' does not exist"),
    ],
)
def test_a_wrong_image_column_is_one_line(words, said):
    frame = things().assign(size=[f"{i}.5" for i in range(1, 41)])
    frame.to_csv("things.csv", index=False)
    found = called("audit", "things.csv", "--label", "kind", *words, *QUICK)
    assert (found.code, found.err.count("\n")) == (3, 1)
    assert said in found.err
