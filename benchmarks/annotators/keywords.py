"""Labeling functions for 20 Newsgroups: a post that has one of the words is in this group.

The words were written down from the names of the groups, without a look at which of them work.
"""

import re

import numpy as np

RULES = {
    "alt.atheism": ("atheist atheists atheism", "agnostic secular deity"),
    "comp.graphics": ("graphics jpeg gif tiff", "polygon rendering raytracing 3d"),
    "comp.os.ms-windows.misc": ("ms-windows win3 winfile", "windows dos ini"),
    "comp.sys.ibm.pc.hardware": ("ide scsi bios isa", "486 motherboard vlb pentium"),
    "comp.sys.mac.hardware": ("mac macintosh apple", "quadra centris powerbook simms"),
    "comp.windows.x": ("x11 motif xterm x11r5", "widget xlib server client"),
    "misc.forsale": ("sale forsale obo", "offer shipping sell asking"),
    "rec.autos": ("car cars sedan", "engine toyota ford honda dealer"),
    "rec.motorcycles": ("motorcycle bike bikes dod", "ride riding helmet bmw"),
    "rec.sport.baseball": ("baseball pitcher inning", "braves mets yankees hitter"),
    "rec.sport.hockey": ("hockey nhl puck", "goalie leafs rangers playoff"),
    "sci.crypt": ("encryption crypto cipher", "clipper nsa key pgp"),
    "sci.electronics": ("circuit voltage resistor", "amp electronics wire signal"),
    "sci.med": ("doctor patients medical", "disease symptoms treatment drug"),
    "sci.space": ("space nasa orbit", "shuttle moon launch satellite"),
    "soc.religion.christian": ("christian church christ", "sin faith scripture bible"),
    "talk.politics.guns": ("gun guns firearms", "weapon nra batf amendment"),
    "talk.politics.mideast": ("israel israeli arab", "armenian turkish jews muslim"),
    "talk.politics.misc": ("president government clinton", "tax gay senate congress"),
    "talk.religion.misc": ("religion jesus god", "koresh prophecy mormon"),
}


def vote(texts) -> np.ndarray:
    """Return the vote of each function (a column) for each text, a group number; −1: it abstains.

    Groups are numbered in alphabetical order.
    """
    found = [set(re.findall(r"[a-z0-9-]+", text.lower())) for text in texts]
    columns = []
    for number, group in enumerate(sorted(RULES)):
        for words in RULES[group]:
            rule = set(words.split())
            columns.append([number if rule & words_of else -1 for words_of in found])
    return np.array(columns).T
