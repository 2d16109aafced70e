"""Pure accounting: a budget goes in, the parameters of a mechanism come out."""
