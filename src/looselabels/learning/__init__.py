"""From features and labels to classes: the classifier and its estimators."""
