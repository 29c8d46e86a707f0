"""The checks of the diagnosis: facts are gathered at the edge, judged by pure functions."""
