"""Releases from Spark: exact sums where the data lies, noise once, on the driver, and numbers, nothing lazy, as the result."""

from armslength.errors import MissingPackageError

try:
    import pyspark  # noqa: F401  # asked for here, so that its absence is one clear line
except ModuleNotFoundError:
    raise MissingPackageError('armslength.spark needs PySpark: pip install "armslength[spark]"') from None

from armslength.spark.frames import to_frame
from armslength.spark.spark_tables import release_table

__all__ = ["release_table", "to_frame"]
