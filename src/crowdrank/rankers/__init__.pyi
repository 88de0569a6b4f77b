"""Types of what is had from here."""

from .auto import Auto as Auto
from .estimator import NDCGScorer as NDCGScorer
from .estimator import ndcg_scorer as ndcg_scorer
from .lambda_mart import LambdaMART as LambdaMART
from .lambda_rank import LambdaRank as LambdaRank
from .list_mle import ListMLE as ListMLE
from .list_net import ListNet as ListNet
from .rank_svm import RankSVM as RankSVM
