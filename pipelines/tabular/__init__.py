"""Click prediction on tabular rows: a wide-and-deep model, as in the studies on Criteo's rows."""
