"""What the evolutionary search needs to select trees by their counts."""

from abc import ABC, abstractmethod
from fractions import Fraction
from typing import ClassVar, Self

from accounting.composition import Step
from accounting.privacy_loss import PrivacyLoss
from mechanisms.kernels.forests import Confusion
from mechanisms.model.context import QueryContext
from mechanisms.model.domains import Dataset
from mechanisms.model.work import Work
from mechanisms.selection import Selector


class Ranking(ABC):
    """Scores the trees of a pool by their private counts, and draws some of them."""

    #: The share of the search's privacy loss that pays for releases before the first trees are
    #: selected, such as noisy class sizes. By default nothing is released then.
    share: ClassVar[Fraction] = Fraction(0)

    def first_steps(self, dataset: Dataset, loss: PrivacyLoss) -> tuple[Step, ...]:
        """The steps of what is released before the first selection: by default none.

        Raises: UnsupportedQuery if the loss is out of the range of exact noise.
        """
        del dataset, loss
        return ()

    def released(self, context: QueryContext, counts: Confusion) -> Self:
        """The same with what is released before the first selection.

        Privacy: ``context.loss`` under the dataset's relation.
        """
        del context, counts
        return self

    @abstractmethod
    def check(self, dataset: Dataset, pool: int, draws: int) -> None:
        """Raise UnsupportedQuery if the scores of a pool of this size could leave 64 bits."""

    @abstractmethod
    def work(self, dataset: Dataset, pool: int, draws: int) -> Work:
        """The public work of all scores of one selection from a pool of counted trees."""

    @abstractmethod
    def steps(self, selector: Selector, loss: PrivacyLoss, draws: int) -> tuple[Step, ...]:
        """The steps that spend the loss of one selection."""

    @abstractmethod
    def drawn(
        self, counts: Confusion, draws: int, selector: Selector, context: QueryContext
    ) -> list[int]:
        """The places of the selected trees of the pool, in the order drawn.

        Privacy: ``context.loss`` under the dataset's relation.
        """
