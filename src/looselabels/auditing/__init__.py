"""From a fitted classifier to the labels to doubt, and to the page that shows them."""
