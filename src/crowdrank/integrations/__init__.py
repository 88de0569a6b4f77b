"""Tools and frameworks that call us or that we call, one file each; each imports the public names only."""
