"""
Labeling functions: keyword rules instead of labels
===================================================

Nobody has labeled these posts. A few rules vote: a post with the word "orbit" is about space.
Some rules are often wrong, and on many posts no rule votes. Each rule is an annotator. Its accuracy
is learned together with a classifier, which also knows the posts without votes.

    python examples/labeling_functions.py [FOLDER]

FOLDER has one folder of texts per group, such as 20news-bydate-train of 20 Newsgroups. Without it,
posts are drawn from a few words.
"""

import sys

import numpy as np
from sklearn.datasets import load_files
from sklearn.feature_extraction.text import TfidfVectorizer

from looselabels import DecoupledClassifier
from looselabels.annotations import Annotations

GROUPS = ["rec.sport.hockey", "sci.med", "sci.space"]
RULES = {  # word → group
    "hockey": 0, "goalie": 0, "shot": 0, "team": 0, "doctor": 1, "disease": 1, "drug": 1,
    "patients": 1, "orbit": 2, "nasa": 2, "moon": 2, "launch": 2,
}  # fmt: skip
TOPICS = [  # a doctor gives a shot, too
    "hockey goalie shot shot team season ice score coach referee stick arena fans rink",
    "doctor disease drug patients shot symptoms diet clinic pain infection study blood team",
    "orbit nasa moon launch shuttle mission solar rocket probe telescope crew mars team",
]
OTHERS = "the a of to and people time good think write know year question thanks"


def draw_posts(n_posts=600, seed=0):
    """Return posts with four words about their group and eight others, and the groups."""
    rng = np.random.default_rng(seed)
    y = rng.integers(len(TOPICS), size=n_posts)
    drawn = [[rng.choice(text.split(), n) for text, n in ((TOPICS[k], 4), (OTHERS, 8))] for k in y]
    return [" ".join(np.concatenate(words)) for words in drawn], y


if len(sys.argv) > 1:
    loaded = load_files(sys.argv[1], categories=GROUPS, encoding="latin-1")
    posts, y = loaded.data, loaded.target
else:
    posts, y = draw_posts()

# One column per rule; None: the rule does not vote. That says something, too: it is a label.
words = [set(post.lower().split()) for post in posts]
votes = np.array([[k if word in post else None for word, k in RULES.items()] for post in words])
X = TfidfVectorizer(min_df=2, sublinear_tf=True).fit_transform(posts)
clf = DecoupledClassifier(refit=1, random_state=0)
clf.fit(X, Annotations.from_table(votes, missing_is_label=True))

counts = np.stack([np.sum(votes == k, axis=1) for k in range(len(GROUPS))], axis=1)
consensus = clf.classes_[clf.class_proba_given_label_.argmax(axis=1)]
voted = counts.any(axis=1)
vote_right, right = (np.mean(found[voted] == y[voted]) for found in (counts.argmax(1), consensus))
print(f"Posts with votes: {voted.mean():.1%}")
print(f"Right classes of these: majority vote {vote_right:.1%}, looselabels {right:.1%}")
print(f"Right classes of the other posts: looselabels {np.mean((consensus == y)[~voted]):.1%}")
for a, (word, k) in enumerate(RULES.items()):
    accuracy, low, high = (clf.annotator_quality_[c][a] for c in ("accuracy", "low", "high"))
    true = np.mean(y[votes[:, a] == k] == k)
    print(f"{word:9} is right in {accuracy:.0%} ({low:.0%} to {high:.0%}); the truth is {true:.0%}")
