"""Pages that KFP's UI shows: a document of plain values, rendered as HTML and as Markdown."""
