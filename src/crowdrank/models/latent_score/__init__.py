"""One latent score per item from judgments of any kind, with or without features."""
