"""Released models that predict classes: free for your own rows, as the models are public.

They are scikit-learn estimators without importing scikit-learn: fitted already, so ``fit`` and
``clone`` change nothing, as in its ``FrozenEstimator``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, Self, overload

from privypurse.answers.record_columns import RecordColumns, is_frame
from privypurse.frames import library
from privypurse.levels import Row


class Classifier(ABC):
    """The predictions of a model, and what scikit-learn reads of an estimator.

    Rows are mappings, a sequence of them, or a data frame of pandas or polars. A data frame is
    read by whole columns and gives NumPy arrays. Raises: ValueError if a value that the model
    reads is absent or unknown.
    """

    #: Tells scikit-learn before 1.6 that this estimator is a classifier.
    _estimator_type = "classifier"

    @property
    @abstractmethod
    def labels(self) -> list[str]:
        """The classes, ascending, in the order of the columns of ``predict_proba``."""

    @abstractmethod
    def _label(self, row: Row) -> str: ...

    @abstractmethod
    def _chances(self, row: Row) -> dict[str, float]: ...

    @abstractmethod
    def _label_column(self, records: RecordColumns) -> Any:
        """The class of each row, (rows,)."""

    @abstractmethod
    def _chance_columns(self, records: RecordColumns) -> Any:
        """The probability of each class, (rows, labels)."""

    @overload
    def predict(self, rows: Row) -> str: ...
    @overload
    def predict(self, rows: Sequence[Row]) -> list[str]: ...
    @overload
    def predict(self, rows: Any) -> Any: ...
    def predict(self, rows: Any) -> Any:
        """The class of one row, of each row of a sequence as a list, or of a frame as an array."""
        if isinstance(rows, Mapping):
            return self._label(rows)
        if is_frame(rows):
            return self._label_column(RecordColumns(rows))
        return [self._label(row) for row in rows]

    @overload
    def predict_proba(self, rows: Row) -> dict[str, float]: ...
    @overload
    def predict_proba(self, rows: Sequence[Row]) -> list[dict[str, float]]: ...
    @overload
    def predict_proba(self, rows: Any) -> Any: ...
    def predict_proba(self, rows: Any) -> Any:
        """The probabilities of the classes by name; of a frame, an array (rows, ``classes_``).

        Raises: ValueError for models without counts.
        """
        if isinstance(rows, Mapping):
            return self._chances(rows)
        if is_frame(rows):
            return self._chance_columns(RecordColumns(rows))
        return [self._chances(row) for row in rows]

    def score(self, rows: Any, labels: Sequence[str]) -> float:
        """The share of rows whose predicted class is the one of ``labels``."""
        pairs = zip(self.predict(rows), labels, strict=True)
        right = [bool(one == other) for one, other in pairs]
        return sum(right) / len(right)

    @property
    def classes_(self) -> Any:
        """The classes as a NumPy array, in the order of the columns of ``predict_proba``."""
        return library("numpy").array(self.labels)

    def fit(self, rows: Any, labels: Any = None) -> Self:
        """Nothing: the service has fitted the model. Your own rows never change it."""
        del rows, labels
        return self

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """No parameters: those of the query are in the answer."""
        del deep
        return {}

    def set_params(self, **parameters: Any) -> Self:
        """Raises: ValueError for any parameter."""
        if parameters:
            raise ValueError("a released model has no parameters")
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def __sklearn_clone__(self) -> Self:
        return self

    def __sklearn_tags__(self) -> Any:
        tags = library("sklearn.utils")
        return tags.Tags(
            estimator_type="classifier",
            target_tags=tags.TargetTags(required=False),
            classifier_tags=tags.ClassifierTags(),
            input_tags=tags.InputTags(string=True, categorical=True, allow_nan=True),
            requires_fit=False,
        )
