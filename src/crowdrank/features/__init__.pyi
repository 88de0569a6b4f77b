from .extraction import like as like
from .extraction import pages as pages
from .extraction import pages_with_measures as pages_with_measures
from .extraction import speech as speech
from .extraction import texts as texts
from .style import StyleCounts as StyleCounts
from .style import style_counts as style_counts
