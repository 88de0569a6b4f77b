"""Public data sets in the house's own terms; nothing is downloaded, and what is missing says where to get it."""

from .catalog import Dataset, Fold, data_folder, load, names, present

__all__ = ["Dataset", "Fold", "data_folder", "load", "names", "present"]
