"""One Spark session for all tests: two executors in processes of their own, as on a cluster. Without Java they are skipped."""

import logging
import os
import shutil
import sys
from pathlib import Path

import pytest

SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.sql.shuffle.partitions": "3",
    "spark.python.worker.reuse": "true",
    # an attempt that hangs gets a second one at once, on another host
    "spark.speculation": "true",
    "spark.speculation.interval": "100ms",
    "spark.speculation.multiplier": "1.0",
    "spark.speculation.quantile": "0.3",
    # a lost executor is noticed at once, and tasks do not wait for a better place
    "spark.shuffle.io.maxRetries": "1",
    "spark.shuffle.io.retryWait": "100ms",
    "spark.locality.wait": "0",
}


@pytest.fixture(scope="session")
def session(tmp_path_factory):
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        pytest.skip("Spark is tested with Java 17: apt-get install openjdk-17-jre-headless")
    pyspark = pytest.importorskip("pyspark", reason="Spark is tested with pip install pyspark")
    from pyspark.sql import SparkSession  # noqa: PLC0415  # where it may be missing

    folder = tmp_path_factory.mktemp("spark")
    # Executors write their logs below SPARK_HOME: links to the installed one keep them out of it.
    for part in Path(pyspark.__file__).parent.iterdir():
        (folder / part.name).symlink_to(part)
    (folder / "quiet.properties").write_text("rootLogger.level = off\n")
    # Short lives: the first compiler and the plain collector take half the time that the others take to warm up.
    options = (
        f"-Dlog4j2.configurationFile=file:{folder}/quiet.properties -XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
    )
    environment = pytest.MonkeyPatch()
    for name, value in {
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_HOME": str(folder),
        "SPARK_LOCAL_DIRS": str(folder / "local"),
        # workers import what the driver imports
        "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
    }.items():
        environment.setenv(name, value)
    logging.getLogger("py4j").setLevel(logging.ERROR)
    builder = SparkSession.builder.master("local-cluster[2,1,1024]").appName("armslength")
    for name, value in SETTINGS.items():
        builder = builder.config(name, value)
    builder = builder.config("spark.sql.warehouse.dir", str(folder / "warehouse"))
    builder = builder.config("spark.driver.extraJavaOptions", options)
    builder = builder.config("spark.executor.extraJavaOptions", options)
    started = builder.getOrCreate()
    started.sparkContext.setLogLevel("OFF")
    yield started
    started.stop()
    environment.undo()
