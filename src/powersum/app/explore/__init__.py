"""A local page to explore a model: click on what is observed and maximised, and see beliefs and answers change."""
