"""The history: every run kept while it goes, shown, resumed, forked, exported."""
