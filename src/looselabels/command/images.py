"""Columns that hold paths of image files: their pixels as features, and thumbnails for the page.

Images are read one after the other, and only a few pixels of each are kept.
"""

import os
import warnings
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from looselabels._validation import import_extra, short_repr
from looselabels.command.encoders import MAX_CATEGORIES, Column, Encoder, FittedColumn
from looselabels.command.tables import TableError, check_columns, is_text

EXTRA = '"looselabels[images]"'
SUFFIXES = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".webp")
FORMATS = ("PNG", "JPEG", "BMP", "GIF", "WEBP")  # other readers of Pillow may start programs
SIDE = 16  # pixels of an image as features
THUMBNAIL = 64  # pixels along the longer side
MAX_UNREADABLE = 0.05  # share of the files; more are an error, such as a wrong folder
N_ROWS, N_FILES = 100, 5  # the first ones decide whether a column holds paths of images


# ---------------------------------------------------------------------------------------- features


@dataclass
class Images(Encoder):
    """The pixels of image files, each scaled to a small square; NaN where there is no image.

    Pixels are from 0 to 1, line by line. The aspect ratio is lost: every image fills the square.
    """

    side: int
    channels: int  # 3, or 1 if all images of the fit are gray
    kind = "images"

    def __post_init__(self):
        expected = self.channels * self.side**2
        if self.channels not in (1, 3) or not 0 < self.side <= 64 or len(self.names) != expected:
            name = short_repr(self.column)
            raise ValueError(f"the sizes of the image column {name} contradict each other.")

    @classmethod
    def fit(cls, column: Column) -> FittedColumn:
        """Return the fitted column: in color, unless all of its images are gray."""
        encoder = cls(column.name, _names(column.name, 3), SIDE, 3)
        encoded = encoder.encode(column)
        known = encoded[~np.isnan(encoded[:, 0])]
        if not len(known) or not np.ptp(known, axis=0).any():
            why = "every image looks the same" if len(known) else "every cell is empty"
            return FittedColumn(column.name, why=why)
        if (known[:, 0::3] == known[:, 1::3]).all() and (known[:, 0::3] == known[:, 2::3]).all():
            encoder = cls(column.name, _names(column.name, 1), SIDE, 1)
            encoded = encoded[:, 0::3]
        return FittedColumn(column.name, encoder, encoded, note=encoder._note(len(known)))

    def encode(self, column) -> np.ndarray:
        """Return the pixels of each image; NaN where a cell is empty or a file cannot be read.

        Raises TableError if more than 5% of the files cannot be read; fewer are a warning.
        """
        if not is_text(column.cells.type):
            raise column.error(None, "should hold paths of image files")
        cells = column.cells.to_pylist()
        paths = list(dict.fromkeys(cell for cell in cells if cell is not None))
        pixels = np.zeros((len(paths), len(self.names)), np.uint8)
        reasons, folder = {}, folder_of(column.frame)
        for i, path in enumerate(paths):
            try:
                image = read_image(folder / path, self.side, square=True, color=self.channels == 3)
                pixels[i] = image.ravel()
            except _Unreadable as error:
                reasons[path] = str(error)
        _report_unreadable(column.name, folder, reasons, len(paths))
        place = {path: i for i, path in enumerate(paths) if path not in reasons}
        encoded = np.full((len(cells), len(self.names)), np.nan, np.float32)
        rows = [i for i, cell in enumerate(cells) if cell in place]
        encoded[rows] = pixels[[place[cells[i]] for i in rows]]
        encoded /= 255
        return encoded

    def _note(self, n_images) -> str:
        color = "in color" if self.channels == 3 else "in gray"
        return (
            f"Column {short_repr(self.column)}: {n_images:,} images read as {self.side} × "
            f"{self.side} pixels {color}. Embeddings of your own usually tell more about photos: "
            "--features FILE."
        )


def fit_images(column: Column, *, declared: bool, named: bool) -> FittedColumn | None:
    """Return the fitted column if it holds paths of image files, otherwise None.

    The user `declared` that the column holds images, or `named` it as a feature of any kind. A
    column of paths that cannot be read is ignored: paths often contain the label.
    """
    if declared:
        return Images.fit(column)
    if has_images(column.frame, column.name):
        if find_spec("PIL") is None:
            return FittedColumn(column.name, why=f"it names image files, which need {EXTRA}")
        return Images.fit(column)
    paths = _paths_of_images(column.frame, column.name)
    if named or not paths or len(column.cells.unique()) <= MAX_CATEGORIES:
        return None
    why = f"it names image files, but {short_repr(paths[0])} is not in {folder_of(column.frame)}"
    return FittedColumn(column.name, why=why)


def _names(column, channels) -> list[str]:
    return [f"{column} #{i + 1}" for i in range(channels * SIDE**2)]


def _report_unreadable(column, folder, reasons, n_files) -> None:
    """Warn of the files that cannot be read; raise if they are more than a few."""
    if not reasons:
        return
    named = [f"{short_repr(path)} {why}" for path, why in list(reasons.items())[:3]]
    more = f"; and {len(reasons) - len(named)} more" if len(reasons) > len(named) else ""
    text = (
        f"Column {short_repr(column)}: {len(reasons):,} of {n_files:,} image files in {folder} "
        f"cannot be read: {'; '.join(named)}{more}."
    )
    if len(reasons) > MAX_UNREADABLE * n_files:
        raise TableError(f"{text} Correct the paths or replace the files.")
    warnings.warn(f"{text} Their pixels are missing values.", stacklevel=3)


# --------------------------------------------------------------------------- columns of image files


def folder_of(frame) -> Path:
    """Return the folder that paths in a table are relative to: that of its file."""
    if "looselabels_folder" in frame.attrs:  # a table made from a folder of images
        return Path(frame.attrs["looselabels_folder"])
    return Path(frame.attrs.get("looselabels", ("-",))[0]).parent  # stdin: the current folder


def has_images(frame, column) -> bool:
    """Return whether a column holds paths of image files: they end like it, and files exist.

    >>> import pandas as pd
    >>> has_images(pd.DataFrame({"photo": ["no such file.png"]}), "photo")
    False
    """
    folder = folder_of(frame)
    return any(os.path.isfile(folder / path) for path in _paths_of_images(frame, column)[:N_FILES])


def image_column(frame, declared=None, label=None) -> str | None:
    """Return the column whose images the page shows: `declared`, or the first that has images."""
    if declared is not None:
        check_columns(list(frame.columns), declared, "The table")
        if declared == label:
            raise TableError(f"Column {short_repr(label)} is the label; it cannot be the image.")
        return declared
    if find_spec("PIL") is None:
        return None
    return next((name for name in frame.columns if name != label and has_images(frame, name)), None)


def _paths_of_images(frame, column) -> list[str]:
    """Return the first cells that are paths of images, or [] if most of the first are not."""
    cells = [cell for cell in frame[column].iloc[:N_ROWS].tolist() if isinstance(cell, str)]
    paths = [cell for cell in cells if cell.lower().endswith(SUFFIXES)]
    return paths if 2 * len(paths) > len(cells) else []


# ----------------------------------------------------------------------------------------- reading


class _Unreadable(Exception):
    """Why an image file cannot be read, as the end of a sentence that starts with its path."""


def read_thumbnails(frame, column, rows) -> list[np.ndarray | None]:
    """Return small images of some rows, as uint8 in color; None where there is none."""
    folder, paths, found = folder_of(frame), frame[column].tolist(), []
    for row in rows:
        try:
            path = paths[row]
            found.append(read_image(folder / path, THUMBNAIL) if isinstance(path, str) else None)
        except _Unreadable:
            found.append(None)
    return found


def read_image(file: Path, side: int, *, square=False, color=True) -> np.ndarray:
    """Return an image as uint8 pixels, (height, width, 3) or in gray (height, width).

    It is rotated as its EXIF data say, put on white where it is transparent, and scaled down to
    `side` pixels along the longer side; if `square`, it is stretched to `side` × `side`. Of an
    animation, the first image is used. Raises _Unreadable.
    """
    image_module, ops = _pillow()
    if not os.path.isfile(file):  # a pipe would block
        raise _Unreadable("is not a file" if os.path.exists(file) else "does not exist")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # on metadata
            warnings.simplefilter("error", image_module.DecompressionBombWarning)
            with image_module.open(file, formats=FORMATS) as image:
                image.draft(None, (side, side))  # decodes a large JPEG at a fraction of its size
                image = _opaque(ops.exif_transpose(image)).convert("RGB" if color else "L")
        if square:
            return np.asarray(image.resize((side, side), image_module.Resampling.BOX))
        image.thumbnail((side, side), image_module.Resampling.BOX)
        return np.asarray(image)
    except (image_module.DecompressionBombError, image_module.DecompressionBombWarning):
        limit = f"{image_module.MAX_IMAGE_PIXELS:,}"
        raise _Unreadable(f"has more than {limit} pixels, the limit of Pillow") from None
    except image_module.UnidentifiedImageError:
        raise _Unreadable(f"is not an image ({', '.join(FORMATS)})") from None
    except Exception as error:  # a damaged file can raise any exception
        raise _Unreadable(f"is damaged ({type(error).__name__})") from None


def _pillow():
    """Return two modules of Pillow."""
    return import_extra("PIL.Image", EXTRA), import_extra("PIL.ImageOps", EXTRA)


def _opaque(image):
    """Return an image of 8 bits per channel on a white background."""
    image_module, _ = _pillow()
    if image.mode.startswith("I"):  # 16 bits, which Pillow would cut off instead of scaling
        return image_module.fromarray((np.asarray(image) // 256).astype(np.uint8))
    if image.mode not in ("RGBA", "LA", "PA") and "transparency" not in image.info:
        return image
    image = image.convert("RGBA")
    white = image_module.new("RGBA", image.size, "white")
    return image_module.alpha_composite(white, image)
