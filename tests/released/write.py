"""Write the files that later versions must read: ``python tests/released/write.py``, once for each release."""

from pathlib import Path

import crowdrank as cr
from crowdrank.cluster.packing import pack_judgments
from crowdrank.io.results import write_consensus

VOTES = {"item": list("xyzxyzxyz"), "annotator": list("aaabbbccc"), "grade": [3, 1, 0, 3, 2, 0, 2, 3, 1]}
FEATURES = {"item": list("xyz"), "length": [9.0, 5.0, 1.0]}


def main() -> None:
    """Write into a folder of the version's name."""
    folder = Path(__file__).parent / cr.__version__
    folder.mkdir()
    consensus = cr.aggregate(VOTES, "dawid_skene")
    for ending in ("csv", "json", "parquet"):
        write_consensus(consensus, folder / f"consensus.{ending}")
    cr.train(VOTES, FEATURES, ranker="list_net", aggregator="mean_grade").save(folder / "list_net.model")
    cr.train(VOTES, FEATURES, ranker="lambda_mart", aggregator="mean_grade").save(folder / "lambda_mart.model")
    pack_judgments([cr.Grades.from_frame(VOTES)], folder / "packed")


if __name__ == "__main__":
    main()
