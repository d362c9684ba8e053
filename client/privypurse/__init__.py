"""The client of a PrivyPurse service: one call, one answer, one charge.

Start with ``PrivyPurse(url, key)``. The functions ``selection``, ``top_k``, ``tree``, ``distance``,
``clustering``, ``statistic`` and ``table`` make queries that can be quoted before they are paid.
"""

from privypurse.accounts import (
    Account,
    Balance,
    Budgets,
    Dataset,
    Entry,
    Key,
    Notice,
    User,
    Verification,
)
from privypurse.administration import IssuedKey
from privypurse.amounts import Amount, Charge
from privypurse.answers.answer import Answer, Interval, Selection, TopK, Value
from privypurse.answers.averages import Average, average
from privypurse.answers.clusters import Clusters
from privypurse.answers.distances import Distance, Distances
from privypurse.answers.naive_bayes import NaiveBayes
from privypurse.answers.tables import Sheet, Table
from privypurse.answers.trees import Tree, Trees
from privypurse.asynchronous import AsyncPrivyPurse
from privypurse.budget_requests import BudgetRequest
from privypurse.certificates import Certificate, CertificateInvalid, verify_certificate
from privypurse.client import PrivyPurse
from privypurse.device_flow import Login, LoginFailed, Prompt, login
from privypurse.frames import Listing, Stream
from privypurse.history import PastQuery
from privypurse.kinds import Query, clustering, distance, selection, statistic, table, top_k, tree
from privypurse.problems import (
    AlreadyExists,
    BelowSpent,
    BudgetExhausted,
    Busy,
    CapExhausted,
    Forbidden,
    InvalidRecords,
    InvalidRequest,
    KeyReused,
    LedgerFrozen,
    NoAnswer,
    NoRecords,
    NotFound,
    PreconditionFailed,
    Problem,
    PurseError,
    QueryFailed,
    QueryReleased,
    RateLimited,
    StillRunning,
    TooCostly,
    TooLarge,
    TooLate,
    Unanswered,
    Unauthenticated,
    Unreachable,
    UnsupportedQuery,
    UploadRunning,
)
from privypurse.quotes import Quote
from privypurse.uploads.sources import Source
from privypurse.uploads.upload import RecordsRefused
from privypurse.version import __version__

__all__ = [
    "Account",
    "AlreadyExists",
    "Amount",
    "Answer",
    "AsyncPrivyPurse",
    "Average",
    "Balance",
    "BelowSpent",
    "BudgetExhausted",
    "BudgetRequest",
    "Budgets",
    "Busy",
    "CapExhausted",
    "Certificate",
    "CertificateInvalid",
    "Charge",
    "Clusters",
    "Dataset",
    "Distance",
    "Distances",
    "Entry",
    "Forbidden",
    "Interval",
    "InvalidRecords",
    "InvalidRequest",
    "IssuedKey",
    "Key",
    "KeyReused",
    "LedgerFrozen",
    "Listing",
    "Login",
    "LoginFailed",
    "NaiveBayes",
    "NoAnswer",
    "NoRecords",
    "NotFound",
    "Notice",
    "PastQuery",
    "PreconditionFailed",
    "PrivyPurse",
    "Problem",
    "Prompt",
    "PurseError",
    "Query",
    "QueryFailed",
    "QueryReleased",
    "Quote",
    "RateLimited",
    "RecordsRefused",
    "Selection",
    "Sheet",
    "Source",
    "StillRunning",
    "Stream",
    "Table",
    "TooCostly",
    "TooLarge",
    "TooLate",
    "TopK",
    "Tree",
    "Trees",
    "Unanswered",
    "Unauthenticated",
    "Unreachable",
    "UnsupportedQuery",
    "UploadRunning",
    "User",
    "Value",
    "Verification",
    "__version__",
    "average",
    "clustering",
    "distance",
    "login",
    "selection",
    "statistic",
    "table",
    "top_k",
    "tree",
    "verify_certificate",
]
