"""The tests of every store: a module that imports all of it provides the fixture `store`."""

from podferry.storage.contract_suite.listing import *  # noqa: F403
from podferry.storage.contract_suite.naming import *  # noqa: F403
from podferry.storage.contract_suite.reading import *  # noqa: F403
from podferry.storage.contract_suite.writing import *  # noqa: F403
