"""A folder of images by class, as a table and in the command."""

import os
from pathlib import Path

import pytest

from looselabels.command.image_folder import image_folder_blocks, read_image_folder
from looselabels.command.images import folder_of
from looselabels.command.tables import TableError
from tests.command.calls import QUICK, called, cells, files, read_csv
from tests.command.test_images import COLORS, draw

pytestmark = pytest.mark.usefixtures("folder")  # each test works in an empty folder


def fruits(folder="fruits", n_images=15):
    """Write images of two classes to subfolders; one of each lies in the wrong one."""
    for k, name in enumerate(COLORS):
        for i in range(n_images):
            wrong = list(COLORS)[1 - k]
            draw(Path(folder, name, f"{i:02}.png"), COLORS[wrong if i == 3 else name], seed=i)


def touch(*paths):
    for path in map(Path, paths):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()


# -------------------------------------------------------------------------------------- the table


def test_subfolders_are_labels_and_other_images_are_unlabeled():
    touch("pets/dog/2.PNG", "pets/dog/1.jpg", "pets/cat/x.webp", "pets/new.gif")
    frame = read_image_folder("pets/")
    expected = [
        ["cat/x.webp", "cat"],
        ["dog/1.jpg", "dog"],
        ["dog/2.PNG", "dog"],
        ["new.gif", None],
    ]
    assert list(frame.columns) == ["path", "label"]
    assert cells(frame) == expected
    assert folder_of(frame) == Path("pets")


def test_images_are_sorted_as_python_sorts_paths():
    touch(
        "pets/cat/1.png", "pets/cat-like/1.png", "pets/cat/10.png", "pets/Dog/1.png", "pets/d.png"
    )
    expected = [path.relative_to("pets") for path in sorted(Path("pets").rglob("*.png"))]
    assert read_image_folder("pets")["path"].map(Path).tolist() == expected


def test_hidden_files_are_skipped_silently():
    touch("pets/cat/1.png", "pets/cat/._1.png", "pets/.git/2.png", "pets/cat/.cache/3.png")
    assert cells(read_image_folder("pets")) == [["cat/1.png", "cat"]]


def test_other_files_are_counted_and_named():
    touch("pets/cat/1.png", "pets/readme.txt", *(f"pets/cat/{letter}.tif" for letter in "abcd"))
    said = r"no images were skipped \(5\): 'readme.txt', 'cat/a.tif', 'cat/b.tif' and 2 more"
    with pytest.warns(UserWarning, match=said):
        read_image_folder("pets")


def test_links_out_of_the_folder_are_not_followed():
    touch("pets/cat/1.png", "secret/2.png", "pets-too/3.png")
    os.symlink("../../secret/2.png", "pets/cat/2.png")
    os.symlink("../../pets-too/3.png", "pets/cat/3.png")  # its name starts like that of the folder
    os.symlink("../secret", "pets/dog")
    os.symlink("1.png", "pets/cat/same.png")  # stays inside
    with pytest.warns(UserWarning, match=r"Links .* skipped \(3\): 'dog', 'cat/2.png'"):
        frame = read_image_folder("pets")
    assert frame["path"].tolist() == ["cat/1.png", "cat/same.png"]
    os.symlink("pets", "link")  # a folder that is a link is what the user named
    with pytest.warns(UserWarning, match=r"Links .* \(3\)"):
        assert read_image_folder("link")["path"].tolist() == frame["path"].tolist()


def test_deeper_folders_belong_to_the_first():
    touch("pets/cat/a/1.png", "pets/dog/2.png")
    with pytest.warns(UserWarning, match=r"deeper folders .* \(1\): 'cat/a/1.png'"):
        assert read_image_folder("pets")["label"].tolist() == ["cat", "dog"]


def test_what_is_not_a_file_or_has_no_name_in_unicode_is_not_read():
    touch("pets/cat/1.png")
    os.mkfifo("pets/cat/pipe.png")
    Path(os.fsdecode(b"pets/cat/\xff.png")).touch()
    with pytest.warns(UserWarning, match=r"no images .*\(2\): .*'cat/pipe.png'.*udcff"):
        assert read_image_folder("pets")["path"].tolist() == ["cat/1.png"]


def test_folders_that_cannot_be_audited_are_refused():
    os.mkdir("empty")
    with pytest.raises(TableError, match=r"empty contains no image \(\.png, \.jpg"):
        read_image_folder("empty")
    touch("flat/1.png")
    with pytest.raises(TableError, match="flat has no subfolder with images; make one for each"):
        read_image_folder("flat")
    touch("split/train/cat/1.png", "split/Test/cat/1.png")
    with pytest.raises(TableError, match=r"not like classes\. Name one of them: split/Test"):
        read_image_folder("split")


def test_blocks_may_be_unlabeled(monkeypatch):
    touch(*(f"flat/{i}.png" for i in range(5)))
    monkeypatch.setattr("looselabels.command.image_folder.N_ROWS", 2)
    blocks = list(image_folder_blocks("flat"))
    assert [block["path"].tolist() for block in blocks] == [
        ["0.png", "1.png"],
        ["2.png", "3.png"],
        ["4.png"],
    ]
    assert {folder_of(block) for block in blocks} == {Path("flat")}


# ------------------------------------------------------------------------------------ the command


def test_a_folder_is_audited_without_a_label_option():
    pytest.importorskip("PIL")
    fruits()
    draw("fruits/new.png", COLORS["leaf"])
    touch("fruits/notes.txt")
    found = called("audit", "fruits/", *QUICK)
    assert found.code == 0, found.err
    assert "Note: Files that are no images were skipped (1): 'notes.txt'." in found.err
    assert files() == ["fruits", "fruits-audit"]
    table = read_csv("fruits-audit/labels.csv")
    assert list(table.columns[:3]) == ["path", "label", "suggestion"]
    differs = table[(table["label"] != table["suggestion"]) & (table["label"] != "")]
    assert differs["path"].tolist() == ["apple/03.png", "leaf/03.png"]
    assert table.set_index("path").loc["new.png", "suggestion"] == "leaf"
    page = Path("fruits-audit/report.html").read_text()
    assert page.count("data:image/png;base64,") == 30  # of the rows with a label
    assert "looselabels audit fruits" in page


@pytest.mark.parametrize("option", ["--id", "--image"])
def test_columns_cannot_be_named_for_a_folder(option):
    touch("pets/cat/1.png")
    found = called("audit", "pets/", option, "path")
    assert found.code == 2
    assert f"Omit {option}: images of a folder are named by their paths." in found.err


def test_a_model_of_a_folder_predicts_another_folder():
    pytest.importorskip("PIL")
    fruits()
    assert called("fit", "fruits", *QUICK).code == 0
    for name, color in COLORS.items():
        draw(f"new/{name}.jpg", color, seed=77)
    found = called("predict", "fruits-model", "new")
    assert found.code == 0, found.err
    rows = [line.split(",") for line in found.out.splitlines()]
    assert [row[:3] for row in rows[1:]] == [["apple.jpg", "", "apple"], ["leaf.jpg", "", "leaf"]]


def test_the_current_folder_has_a_name(monkeypatch):
    pytest.importorskip("PIL")
    fruits()
    monkeypatch.chdir("fruits")
    assert called("audit", ".", *QUICK, "-o", "../out").code == 0
    page = Path("../out/report.html").read_text()
    assert "looselabels audit fruits" in page


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (
            ("audit", "fruits", "--label", "kind"),
            2,
            "fruits is a folder. For a table, name its file",
        ),
        (("audit", "empty"), 3, "empty contains no image"),
        (("predict", "fruits", "fruits"), 3, "fruits is not a model"),
        (("audit", "fruits", "--unlabeled", "leaf"), 3, "contains only one label, ['apple']"),
    ],
)
def test_bad_folders_are_one_line(words, code, said):
    touch("fruits/apple/1.png", *(f"fruits/leaf/{i}.png" for i in range(10)))
    os.mkdir("empty")
    found = called(*words)
    assert found.code == code
    assert said in found.err
    assert "fruits-audit" not in files()


@pytest.mark.parametrize("place", [".", "tables", "fruits"])
def test_the_corrected_table_of_a_folder_is_audited_where_it_is(place, monkeypatch):
    pytest.importorskip("PIL")
    fruits()
    Path("tables").mkdir(exist_ok=True)
    assert called("audit", "fruits", *QUICK, "--accept-above", "0.6").code == 0
    words = ("apply", "fruits", "fruits-audit/decisions.csv", "-o", f"{place}/better.csv")
    assert called(*words).code == 0
    paths = read_csv(f"{place}/better.csv")["path"]
    assert all((Path(place) / path).is_file() for path in paths)
    monkeypatch.chdir("tables")  # from another folder
    found = called("audit", f"../{place}/better.csv", "--label", "label", *QUICK, "--quiet")
    assert found.code == 0, found.err
    report = Path("better-audit/report.html").read_text()
    assert report.count("<img ") == 30
    assert "No sign of wrong labels" in report or "no single label is more likely" in report


def test_decisions_on_a_folder_correct_its_table():
    pytest.importorskip("PIL")
    fruits()
    assert called("audit", "fruits/", *QUICK, "--accept-above", "0.6").code == 0
    found = called("apply", "fruits/", "fruits-audit/decisions.csv")
    assert found.code == 0, found.err
    table = read_csv("fruits-corrected.csv").set_index("path")["label"]
    assert table["fruits/apple/03.png"] == "leaf"
    assert table["fruits/leaf/03.png"] == "apple"
    assert len(read_csv("fruits-corrected-changes.csv")) == 2
    assert files("fruits/apple") == [f"{i:02}.png" for i in range(15)]  # no image was moved


def test_answers_of_several_annotators_name_the_paths_of_images():
    lines = ["path,annotator,label"]
    for i in range(30):
        kind = list(COLORS)[i % 2]
        draw(Path("photos", f"{i:02}.png"), COLORS[kind], seed=i)
        lines += [f"{i:02}.png,{who},{kind}" for who in ("ann", "bob")[: 1 + i % 2]]
    Path("answers.csv").write_text("\n".join(lines))
    done = called("audit", "photos", "--annotations", "answers.csv", "--model", "kernel")
    assert done.code == 0, done.err
    table = read_csv("photos-audit/labels.csv")
    assert list(table) == ["path", "consensus", "probability", "n_answers", "more_answers"]
    assert table["consensus"].tolist() == list(COLORS) * 15
    assert "model" in files("photos-audit")  # which is there only if the images were learned from
