"""The configuration keys Penstock knows: Flink's where the meaning is Flink's, and a few of its own.

Keys under `spark.` go to the Spark session as they are.
"""

from __future__ import annotations

from typing import Any

from penstock.common.config_options import ConfigOption, ConfigOptions

_key = ConfigOptions.key
_MINUTE_MS = 60_000

# The job
PARALLELISM = (
    _key("parallelism.default")
    .int_type()
    .default_value(1)
    .with_description("how many subtasks an operator has unless it sets its own")
)
MAX_PARALLELISM = (
    _key("pipeline.max-parallelism")
    .int_type()
    .default_value(-1)
    .with_description(
        "the number of key groups: the most subtasks that state can ever be spread over; -1: it follows "
        "from the parallelism, at least 128"
    )
)
JOB_NAME = (
    _key("pipeline.name")
    .string_type()
    .no_default_value()
    .with_description("the name of the job, unless execute(...) gives one")
)
FIXED_JOB_ID = (
    _key("penstock.job-id")
    .string_type()
    .no_default_value()
    .with_deprecated_keys("$internal.pipeline.job-id")
    .with_description(
        "32 hexadecimal digits: the job's id, instead of a random one; a program that is started again with the same "
        "id and execution.checkpointing.dir continues from the job's newest checkpoint"
    )
)
JARS = _key("pipeline.jars").list_type().no_default_value().with_description("jars for Spark; connectors need none")
CLASSPATHS = _key("pipeline.classpaths").list_type().no_default_value().with_description("the same as pipeline.jars")
AUTO_GENERATE_UIDS = (
    _key("pipeline.auto-generate-uids")
    .boolean_type()
    .default_value(True)
    .with_description(
        "false: every operator must have a uid; true: one without gets an id from its place in the program"
    )
)
AUTO_WATERMARK_INTERVAL = (
    _key("pipeline.auto-watermark-interval")
    .duration_type()
    .default_value(200)
    .with_description("time between two periodic watermarks; 0: a watermark after every record")
)
OPERATOR_CHAINING = (
    _key("pipeline.operator-chaining.enabled")
    .boolean_type()
    .default_value(True)
    .with_deprecated_keys("pipeline.operator-chaining")
    .with_description("false: every operator runs by itself, which is slower")
)
CHAIN_DIFFERENT_MAX_PARALLELISM = (
    _key("pipeline.operator-chaining.chain-operators-with-different-max-parallelism").boolean_type().default_value(True)
)
OBJECT_REUSE = (
    _key("pipeline.object-reuse")
    .boolean_type()
    .default_value(False)
    .with_description(
        "true: elements are handed from function to function without a copy; functions must not change what "
        "they have emitted or been given"
    )
)
GLOBAL_JOB_PARAMETERS = (
    _key("pipeline.global-job-parameters")
    .map_type()
    .no_default_value()
    .with_description("parameters that functions and the REST API can read")
)
PARALLELISM_OVERRIDES = _key("pipeline.jobvertex-parallelism-overrides").map_type().no_default_value()
CACHED_FILES = (
    _key("pipeline.cached-files")
    .list_type()
    .no_default_value()
    .with_description("files that functions find by name, such as name:words,path:/data/words.txt")
)
CLOSURE_CLEANER_LEVEL = _key("pipeline.closure-cleaner-level").string_type().default_value("RECURSIVE")
FORCE_KRYO = _key("pipeline.force-kryo").boolean_type().default_value(False)
FORCE_AVRO = _key("pipeline.force-avro").boolean_type().default_value(False)
GENERIC_TYPES = _key("pipeline.generic-types").boolean_type().default_value(True)
EXECUTION_MODE = _key("execution.mode").string_type().default_value("PIPELINED")
INPUT_DEPENDENCY_CONSTRAINT = _key("execution.input-dependency-constraint").string_type().default_value("ANY")
VERTEX_DESCRIPTION_MODE = _key("pipeline.vertex-description-mode").string_type().default_value("TREE")
TIME_CHARACTERISTIC = (
    _key("pipeline.time-characteristic")
    .string_type()
    .default_value("EVENT_TIME")
    .with_description("what time_window means by time, if it is set: EVENT_TIME or PROCESSING_TIME")
)

PRINT_LOOK = (
    _key("penstock.print.look")
    .string_type()
    .default_value("flink")
    .with_description(
        "What print() makes of elements without a declared type: flink, (a,1), or pyflink, ('a', 1), which "
        "`penstock run --pyflink` sets"
    )
)

TIMESTAMP_ASSIGNERS = (
    _key("penstock.timestamp-assigners")
    .string_type()
    .default_value("flink")
    .with_description(
        "Where timestamp assigners count: flink, everywhere; or pyflink, not at from_source, nor if with_idleness or "
        "with_watermark_alignment was called after them, which `penstock run --pyflink` sets"
    )
)

# Execution
RUNTIME_MODE = (
    _key("execution.runtime-mode")
    .string_type()
    .default_value("STREAMING")
    .with_description("STREAMING, BATCH, or AUTOMATIC: BATCH if all sources are bounded")
)
TARGET = (
    _key("execution.target")
    .string_type()
    .default_value("spark")
    .with_description(
        "spark: a Spark session, made on demand; inline: this process, without Spark; remote: the job manager at "
        "rest.address and rest.port; local means spark"
    )
)
ATTACHED = (
    _key("execution.attached")
    .boolean_type()
    .default_value(False)
    .with_description("with a job manager: false lets the client return as soon as the job was submitted")
)
SHUTDOWN_ON_EXIT = (
    _key("execution.shutdown-on-attached-exit")
    .boolean_type()
    .default_value(False)
    .with_description("with a job manager: true cancels the job when its client exits")
)
BUFFER_TIMEOUT_ENABLED = (
    _key("execution.buffer-timeout.enabled")
    .boolean_type()
    .default_value(True)
    .with_description("false: epochs start at most every 100 ms")
)
BUFFER_TIMEOUT = (
    _key("execution.buffer-timeout.interval")
    .duration_type()
    .default_value(100)
    .with_deprecated_keys("execution.buffer-timeout")
    .with_description(
        "the longest time that a record waits before its epoch begins, if nothing else is happening; "
        "at most 5 ms unless set"
    )
)
EPOCH_INTERVAL = (
    _key("penstock.epoch.interval")
    .duration_type()
    .no_default_value()
    .with_description(
        "the least time between the beginnings of two epochs; unless set, execution.buffer-timeout.interval"
    )
)
EPOCH_MAX_RECORDS = (
    _key("penstock.epoch.max-records")
    .long_type()
    .no_default_value()
    .with_description(
        "the most records that a source subtask reads in one epoch; unless set, as many as fit the time of an epoch"
    )
)
EPOCH_TARGET_DURATION = (
    _key("penstock.epoch.target-duration")
    .duration_type()
    .default_value(500)
    .with_description("how long an epoch should take: sources read less at a time where epochs take longer")
)
SOURCE_IDLE_POLL_INTERVAL = (
    _key("penstock.source.idle-poll-interval")
    .duration_type()
    .default_value(200)
    .with_description(
        "how long to wait before asking a reader that found nothing again, unless the reader says how long"
    )
)
SPOOL_MAX_RECORDS = (
    _key("penstock.source.spool.max-records")
    .int_type()
    .default_value(100_000)
    .with_description("the most elements that a source function or socket may be ahead of the job in each subtask")
)
SPOOL_MAX_BYTES = (
    _key("penstock.source.spool.max-bytes")
    .long_type()
    .default_value(64 * 1024 * 1024)
    .with_description("the most bytes that a source function or socket may be ahead of the job in each subtask")
)
ON_ERROR = (
    _key("penstock.on-error")
    .string_type()
    .default_value("fail")
    .with_description(
        "what happens to an element for which a function raises, unless its operator has an on_error(...) of its own: "
        "fail (the job), or skip (leave it out and count it)"
    )
)
ON_ERROR_MOST = (
    _key("penstock.on-error.max-failures")
    .int_type()
    .no_default_value()
    .with_description(
        "with penstock.on-error: skip: a subtask in which more elements fail within penstock.on-error.interval fails "
        "the job; not set: any number"
    )
)
ON_ERROR_INTERVAL = (
    _key("penstock.on-error.interval")
    .duration_type()
    .default_value(_MINUTE_MS)
    .with_description("the time in which penstock.on-error.max-failures elements may fail")
)
INLINE_FUNCTIONS = (
    _key("penstock.inline-functions.enabled")
    .boolean_type()
    .default_value(True)
    .with_description("do the work of functions in generated loops instead of calling them, where nothing else changes")
)
COLUMNAR_EXCHANGE = (
    _key("penstock.columnar-exchange.enabled")
    .boolean_type()
    .default_value(True)
    .with_description("send numbers, strings and tuples of them in columns instead of one by one")
)
COMBINE = (
    _key("penstock.combine.enabled")
    .boolean_type()
    .default_value(True)
    .with_description("reduce the elements of a window before they are exchanged, where the result is the same")
)
LOWERING = (
    _key("penstock.lowering.enabled")
    .boolean_type()
    .default_value(True)
    .with_description("let Spark SQL carry out maps and filters behind a DataFrame, where the result is the same")
)
WORKING_DIR = (
    _key("penstock.working-dir")
    .string_type()
    .no_default_value()
    .with_description("where a job keeps its files while it runs; a temporary folder unless set")
)

# Checkpoints and state
CHECKPOINT_INTERVAL = (
    _key("execution.checkpointing.interval")
    .duration_type()
    .no_default_value()
    .with_description(
        "time between the starts of two checkpoints; none: no checkpoints, unless a restart strategy is "
        "set, which makes every epoch one"
    )
)
CHECKPOINT_INTERVAL_DURING_BACKLOG = (
    _key("execution.checkpointing.interval-during-backlog").duration_type().no_default_value()
)
CHECKPOINT_MODE = _key("execution.checkpointing.mode").string_type().default_value("EXACTLY_ONCE")
CHECKPOINT_TIMEOUT = (
    _key("execution.checkpointing.timeout")
    .duration_type()
    .default_value(10 * _MINUTE_MS)
    .with_description("a checkpoint that takes longer has failed")
)
CHECKPOINT_MIN_PAUSE = (
    _key("execution.checkpointing.min-pause")
    .duration_type()
    .default_value(0)
    .with_description("least time between the end of a checkpoint and the start of the next")
)
MAX_CONCURRENT_CHECKPOINTS = _key("execution.checkpointing.max-concurrent-checkpoints").int_type().default_value(1)
RETAINED_CHECKPOINTS = (
    _key("execution.checkpointing.num-retained")
    .int_type()
    .default_value(1)
    .with_deprecated_keys("state.checkpoints.num-retained")
    .with_description("how many complete checkpoints are kept")
)
TOLERABLE_FAILED_CHECKPOINTS = (
    _key("execution.checkpointing.tolerable-failed-checkpoints")
    .int_type()
    .default_value(0)
    .with_description("how many checkpoints in a row may fail before the job does")
)
CHECKPOINT_RETENTION = (
    _key("execution.checkpointing.externalized-checkpoint-retention")
    .string_type()
    .default_value("NO_EXTERNALIZED_CHECKPOINTS")
    .with_description(
        "which checkpoints stay when the job ends: NO_EXTERNALIZED_CHECKPOINTS, DELETE_ON_CANCELLATION "
        "(those of a failed job), RETAIN_ON_CANCELLATION (also those of a cancelled one)"
    )
)
CHECKPOINT_DIR = (
    _key("execution.checkpointing.dir")
    .string_type()
    .no_default_value()
    .with_deprecated_keys("state.checkpoints.dir", "state.backend.fs.checkpointdir")
    .with_description("the folder or URI for checkpoints, which all machines must reach; none: a temporary folder")
)
SAVEPOINT_DIR = (
    _key("execution.checkpointing.savepoint-dir")
    .string_type()
    .no_default_value()
    .with_deprecated_keys("state.savepoints.dir")
    .with_description("the folder or URI for savepoints where a command names none")
)
CHECKPOINT_STORAGE = (
    _key("execution.checkpointing.storage")
    .string_type()
    .no_default_value()
    .with_deprecated_keys("state.checkpoint-storage")
    .with_description("filesystem, or jobmanager: a temporary folder of the driver, whatever folder is set")
)
INCREMENTAL_CHECKPOINTS = (
    _key("execution.checkpointing.incremental")
    .boolean_type()
    .default_value(False)
    .with_deprecated_keys("state.backend.incremental")
)
UNALIGNED_CHECKPOINTS = (
    _key("execution.checkpointing.unaligned.enabled")
    .boolean_type()
    .default_value(False)
    .with_deprecated_keys("execution.checkpointing.unaligned")
)
FORCE_UNALIGNED = _key("execution.checkpointing.unaligned.forced").boolean_type().default_value(False)
ALIGNED_CHECKPOINT_TIMEOUT = (
    _key("execution.checkpointing.aligned-checkpoint-timeout")
    .duration_type()
    .default_value(0)
    .with_deprecated_keys("execution.checkpointing.alignment-timeout")
)
CHECKPOINTS_AFTER_TASKS_FINISH = (
    _key("execution.checkpointing.checkpoints-after-tasks-finish").boolean_type().default_value(True)
)
SNAPSHOT_COMPRESSION = (
    _key("execution.checkpointing.snapshot-compression")
    .boolean_type()
    .default_value(False)
    .with_description("true: the state files of checkpoints are compressed")
)
FILE_MERGING = _key("execution.checkpointing.file-merging.enabled").boolean_type().default_value(False)
LOCAL_BACKUP = (
    _key("execution.checkpointing.local-backup.enabled")
    .boolean_type()
    .default_value(False)
    .with_description("keep a copy of the newest state files on the disk of the worker that wrote them")
)
LOCAL_BACKUP_DIR = (
    _key("execution.checkpointing.local-backup.dirs")
    .string_type()
    .no_default_value()
    .with_deprecated_keys("taskmanager.state.local.root-dirs")
    .with_description("the folder for these copies on each host; that of temporary files unless set")
)
SAVEPOINT_PATH = (
    _key("execution.state-recovery.path")
    .string_type()
    .no_default_value()
    .with_deprecated_keys("execution.savepoint.path")
    .with_description("start from this savepoint or checkpoint; the same as run -s")
)
CLAIM_MODE = (
    _key("execution.state-recovery.claim-mode")
    .string_type()
    .default_value("NO_CLAIM")
    .with_deprecated_keys("execution.savepoint-restore-mode")
    .with_description(
        "CLAIM: the job owns what it started from, and removes it as soon as it has a checkpoint; NO_CLAIM: it stays"
    )
)
IGNORE_UNCLAIMED_STATE = (
    _key("execution.state-recovery.ignore-unclaimed-state")
    .boolean_type()
    .default_value(False)
    .with_deprecated_keys("execution.savepoint.ignore-unclaimed-state")
    .with_description("true: start even if some state belongs to no operator of the program; the same as run -n")
)
RECOVER_FROM_LOCAL = (
    _key("execution.state-recovery.from-local")
    .boolean_type()
    .default_value(False)
    .with_deprecated_keys("state.backend.local-recovery")
    .with_description(
        "restore state from copies on the worker's own host where there are some, and from the checkpoint storage "
        "otherwise; makes the copies as well"
    )
)
STATE_BACKEND = (
    _key("state.backend.type")
    .string_type()
    .default_value("hashmap")
    .with_deprecated_keys("state.backend")
    .with_description("where keyed state is kept while the job runs: hashmap (memory) or rocksdb (local disk)")
)
DISK_LOCAL_DIR = (
    _key("state.backend.rocksdb.localdir")
    .string_type()
    .no_default_value()
    .with_deprecated_keys("state.backend.forst.local-dir")
    .with_description("folders on local disks for state that is kept on disk, separated by commas")
)
DISK_MEMORY = (
    _key("state.backend.rocksdb.memory.fixed-per-slot")
    .string_type()
    .no_default_value()
    .with_description(
        "how much memory the objects of plain keyed state that is kept on disk may take in a slot, for example 512 mb"
    )
)
DISK_CACHE_ENTRIES = (
    _key("penstock.state.disk.cache-entries")
    .int_type()
    .default_value(100_000)
    .with_description("how many entries of a state that is kept on disk a subtask has in memory")
)

# Failure
RESTART_STRATEGY = (
    _key("restart-strategy.type")
    .string_type()
    .no_default_value()
    .with_deprecated_keys("restart-strategy")
    .with_description("what a job does after a failure: none, fixed-delay, failure-rate or exponential-delay")
)
FIXED_DELAY_ATTEMPTS = (
    _key("restart-strategy.fixed-delay.attempts").int_type().default_value(1).with_description("the number of restarts")
)
FIXED_DELAY = (
    _key("restart-strategy.fixed-delay.delay")
    .duration_type()
    .default_value(1000)
    .with_description("time before each restart")
)
EXPONENTIAL_INITIAL = (
    _key("restart-strategy.exponential-delay.initial-backoff")
    .duration_type()
    .default_value(1000)
    .with_description("time before the first restart")
)
EXPONENTIAL_MAX = (
    _key("restart-strategy.exponential-delay.max-backoff")
    .duration_type()
    .default_value(_MINUTE_MS)
    .with_description("the longest time before a restart")
)
EXPONENTIAL_MULTIPLIER = (
    _key("restart-strategy.exponential-delay.backoff-multiplier")
    .double_type()
    .default_value(1.5)
    .with_description("how much longer each restart waits than the one before")
)
EXPONENTIAL_RESET = (
    _key("restart-strategy.exponential-delay.reset-backoff-threshold")
    .duration_type()
    .default_value(60 * _MINUTE_MS)
    .with_description("after this long without a failure the delay starts over")
)
EXPONENTIAL_JITTER = (
    _key("restart-strategy.exponential-delay.jitter-factor")
    .double_type()
    .default_value(0.1)
    .with_description("the share by which a delay varies at random")
)
EXPONENTIAL_ATTEMPTS = (
    _key("restart-strategy.exponential-delay.attempts-before-reset-backoff")
    .int_type()
    .default_value(2**31 - 1)
    .with_description("how many restarts before the job fails, counted since the delay last started over")
)
REPEATED_FAILURE_ATTEMPTS = (
    _key("penstock.restart.repeated-failure-attempts")
    .int_type()
    .default_value(10)
    .with_description(
        "With checkpoints on and no restart strategy set: restarts after a failure that repeats at the same record, or "
        "without progress"
    )
)
FAILURE_RATE_MAX = (
    _key("restart-strategy.failure-rate.max-failures-per-interval")
    .int_type()
    .default_value(1)
    .with_description("how many failures within the interval are followed by a restart")
)
FAILURE_RATE_INTERVAL = (
    _key("restart-strategy.failure-rate.failure-rate-interval")
    .duration_type()
    .default_value(_MINUTE_MS)
    .with_description("the interval in which failures are counted")
)
FAILURE_RATE_DELAY = (
    _key("restart-strategy.failure-rate.delay")
    .duration_type()
    .default_value(1000)
    .with_description("time before each restart")
)
FAILOVER_STRATEGY = (
    _key("jobmanager.execution.failover-strategy")
    .string_type()
    .default_value("region")
    .with_description("region: what is connected with the failed task restarts; full: the whole job does")
)
TASK_CANCELLATION_INTERVAL = (
    _key("task.cancellation.interval")
    .duration_type()
    .default_value(30_000)
    .with_deprecated_keys("task.cancellation-interval")
)
TASK_CANCELLATION_TIMEOUT = (
    _key("task.cancellation.timeout")
    .duration_type()
    .default_value(180_000)
    .with_description(
        "how long a source function may take to end when its job ends; after half as much again the job ends without "
        "waiting for calls that do not return, such as those of a store or a committer; 10 s unless set; 0: a job that "
        "is cancelled waits for ever for them"
    )
)

# Cluster, REST, metrics
SCHEDULER = _key("jobmanager.scheduler").string_type().default_value("Default")
SCHEDULER_MODE = _key("scheduler-mode").string_type().no_default_value()
TASK_SLOTS = (
    _key("taskmanager.numberOfTaskSlots")
    .int_type()
    .no_default_value()
    .with_description(
        "slots of each executor; jobs then wait until there are enough, as in Flink. Unless set, there is no limit"
    )
)
SLOT_TIMEOUT = (
    _key("slot.request.timeout")
    .duration_type()
    .default_value(5 * _MINUTE_MS)
    .with_description("how long a job waits for slots before it fails")
)
HEARTBEAT_INTERVAL = (
    _key("heartbeat.interval")
    .duration_type()
    .default_value(10_000)
    .with_description("how often the driver and the workers of a job send each other a sign of life")
)
HEARTBEAT_TIMEOUT = (
    _key("heartbeat.timeout")
    .duration_type()
    .default_value(50_000)
    .with_description("a worker or driver that has been silent for this long is considered lost")
)
DRIVER_PORTS = (
    _key("jobmanager.rpc.bind-port")
    .string_type()
    .default_value("0")
    .with_description(
        "on a cluster: the ports (50100, 50100-50200 or several of these) on which the driver waits for the workers of "
        "a region until all have connected; 0: any"
    )
)
WORKER_PORTS = (
    _key("taskmanager.data.bind-port")
    .string_type()
    .default_value("0")
    .with_description("on a cluster: the ports on which workers wait for each other, in the same form; 0: any")
)
ARCHIVE_DIR = (
    _key("jobmanager.archive.fs.dir")
    .string_type()
    .no_default_value()
    .with_description("where a job manager writes ended jobs, in the form of Flink's archives")
)
HIGH_AVAILABILITY = (
    _key("high-availability.type")
    .string_type()
    .default_value("NONE")
    .with_deprecated_keys("high-availability")
    .with_description("filesystem or zookeeper: several job managers stand by for each other")
)
HA_STORAGE_DIR = (
    _key("high-availability.storageDir")
    .string_type()
    .no_default_value()
    .with_deprecated_keys("high-availability.zookeeper.storageDir", "recovery.zookeeper.storageDir")
    .with_description("the folder, reached by all job managers, where the leader keeps what the next one needs")
)
HA_CLUSTER_ID = (
    _key("high-availability.cluster-id")
    .string_type()
    .default_value("/default")
    .with_deprecated_keys("high-availability.zookeeper.path.namespace")
    .with_description("job managers with the same id and storageDir belong together")
)
HA_LEASE_DURATION = (
    _key("penstock.high-availability.lease-duration")
    .duration_type()
    .default_value(10_000)
    .with_description("filesystem: a leader that gives no sign of life for this long is considered dead")
)
HA_RENEW_INTERVAL = (
    _key("penstock.high-availability.renew-interval")
    .duration_type()
    .default_value(2_000)
    .with_description("filesystem: how often the leader gives a sign of life, and the others look for one")
)
ZOOKEEPER_QUORUM = (
    _key("high-availability.zookeeper.quorum")
    .string_type()
    .no_default_value()
    .with_description("ZooKeeper's servers, such as a:2181,b:2181")
)
ZOOKEEPER_ROOT = (
    _key("high-availability.zookeeper.path.root")
    .string_type()
    .default_value("/flink")
    .with_description("the node in ZooKeeper that is above all others")
)
ZOOKEEPER_SESSION_TIMEOUT = (
    _key("high-availability.zookeeper.client.session-timeout")
    .duration_type()
    .default_value(_MINUTE_MS)
    .with_description("zookeeper: a leader that gives no sign of life for this long is considered dead")
)
ZOOKEEPER_CONNECTION_TIMEOUT = (
    _key("high-availability.zookeeper.client.connection-timeout")
    .duration_type()
    .default_value(15_000)
    .with_description("how long to try to reach ZooKeeper")
)
REST_PORT = (
    _key("rest.port")
    .int_type()
    .default_value(8081)
    .with_deprecated_keys("web.port")
    .with_description("the port of the REST API and the dashboard; for clients, that of the job manager")
)
REST_BIND_PORT = (
    _key("rest.bind-port")
    .string_type()
    .default_value("8081")
    .with_description("the port, or a range of ports such as 8081-8090, that a server listens on")
)
REST_ADDRESS = (
    _key("rest.address").string_type().no_default_value().with_description("for clients: the host of the job manager")
)
REST_BIND_ADDRESS = (
    _key("rest.bind-address")
    .string_type()
    .no_default_value()
    .with_description("the address that a server listens on; 127.0.0.1 unless set")
)
REST_AUTH_ENABLED = (
    _key("rest.auth.enabled")
    .boolean_type()
    .default_value(True)
    .with_description("false: anyone who reaches the REST API over TCP may use it, and clients trust any server")
)
REST_AUTH_TOKEN = (
    _key("rest.auth.token")
    .string_type()
    .no_default_value()
    .with_description("what clients must know to use the REST API over TCP; made at the start of a server unless set")
)
REST_AUTH_TOKEN_FILE = (
    _key("rest.auth.token-file").string_type().no_default_value().with_description("the file that holds the token")
)
REST_AUTH_FORWARDED = (
    _key("rest.auth.forwarded")
    .boolean_type()
    .default_value(False)
    .with_description("for clients: true if a port of this machine leads to a server elsewhere, as with ssh -L")
)
SSL_REST_ENABLED = (
    _key("security.ssl.rest.enabled")
    .boolean_type()
    .default_value(False)
    .with_description("true: the REST API speaks TLS")
)
SSL_REST_KEYSTORE = (
    _key("security.ssl.rest.keystore")
    .string_type()
    .no_default_value()
    .with_description("a PEM file with the server's certificate and key")
)
SSL_REST_KEYSTORE_PASSWORD = (
    _key("security.ssl.rest.keystore-password")
    .string_type()
    .no_default_value()
    .with_description("the password of that file")
)
SSL_REST_KEY_PASSWORD = (
    _key("security.ssl.rest.key-password")
    .string_type()
    .no_default_value()
    .with_description("the password of the key in it")
)
SSL_REST_TRUSTSTORE = (
    _key("security.ssl.rest.truststore")
    .string_type()
    .no_default_value()
    .with_description("a PEM file with the certificates that the other side may have")
)
SSL_REST_AUTHENTICATION = (
    _key("security.ssl.rest.authentication-enabled")
    .boolean_type()
    .default_value(False)
    .with_description("true: clients must show a certificate, too")
)
REST_STORE_DURATION = (
    _key("rest.async.store-duration")
    .duration_type()
    .default_value(5 * _MINUTE_MS)
    .with_description("how long clients can ask for the outcome of an operation, such as a savepoint")
)
REST_MAX_CONTENT = (
    _key("rest.server.max-content-length")
    .int_type()
    .default_value(100 * 1024 * 1024)
    .with_description("the largest file, in bytes, that may be uploaded to a job manager; a job's graph is one")
)
BLOB_CLEANUP_INTERVAL = (
    _key("blob.service.cleanup.interval")
    .long_type()
    .default_value(3600)
    .with_description("how many seconds a job manager keeps an uploaded file that no running job uses")
)
BLOB_MAX_TOTAL = (
    _key("penstock.blob.max-total-size")
    .long_type()
    .default_value(4 * 1024 * 1024 * 1024)
    .with_description("the most bytes that the uploaded files kept by a job manager may take together")
)
JOB_STORE_CAPACITY = (
    _key("jobstore.max-capacity")
    .int_type()
    .default_value(100)
    .with_description("how many ended jobs a job manager keeps in its list")
)
WEB_UI_ENABLED = (
    _key("web.ui.enabled")
    .boolean_type()
    .default_value(True)
    .with_description("false: no dashboard, and no port is opened for it; same as --no-web")
)
WEB_SUBMIT = (
    _key("web.submit.enable")
    .boolean_type()
    .default_value(False)
    .with_description("true: anyone with the job manager's token may upload Python programs and run them there")
)
WEB_CANCEL = (
    _key("web.cancel.enable")
    .boolean_type()
    .default_value(True)
    .with_description("false: the dashboard has no button to cancel jobs")
)
WEB_REFRESH_INTERVAL = (
    _key("web.refresh-interval")
    .duration_type()
    .default_value(3000)
    .with_description("how often the dashboard refreshes")
)
WEB_CHECKPOINT_HISTORY = (
    _key("web.checkpoints.history")
    .int_type()
    .default_value(10)
    .with_description("how many checkpoints the REST API remembers")
)
WEB_EXCEPTION_HISTORY = (
    _key("web.exception-history-size")
    .int_type()
    .default_value(16)
    .with_description("how many failures the REST API remembers")
)
LOG_DIR = (
    _key("env.log.dir")
    .string_type()
    .no_default_value()
    .with_description(
        "where each job writes a log file of its own, penstock-<job id>.log, rotated at 10 MB; none unless set"
    )
)
LOG_MAX_FILES = (
    _key("env.log.max").int_type().default_value(10).with_description("how many older log files of a job are kept")
)
METRIC_REPORTERS = (
    _key("metrics.reporters")
    .string_type()
    .no_default_value()
    .with_description("which reporters of metrics.reporter.<name>.* are used, separated by commas; all unless set")
)
LATENCY_INTERVAL = (
    _key("metrics.latency.interval")
    .duration_type()
    .default_value(0)
    .with_description("how often sources emit latency markers; 0: never")
)
LATENCY_GRANULARITY = (
    _key("metrics.latency.granularity")
    .string_type()
    .default_value("operator")
    .with_description("what histograms of latency keep apart: single (nothing), operator (sources), subtask (of those)")
)
LATENCY_HISTORY = (
    _key("metrics.latency.history-size")
    .int_type()
    .default_value(128)
    .with_description("how many latency markers each operator reports on")
)

# Python
PYTHON_FILES = (
    _key("python.files")
    .string_type()
    .no_default_value()
    .with_description("files, folders and zips that functions import from, separated by commas")
)
PYTHON_ARCHIVES = (
    _key("python.archives")
    .string_type()
    .no_default_value()
    .with_description("archives to unpack where functions run, such as data.zip#data, separated by commas")
)
PYTHON_REQUIREMENTS = (
    _key("python.requirements")
    .string_type()
    .no_default_value()
    .with_description("packages to install for functions: a requirements file, and after # a folder with the packages")
)
PYTHON_EXECUTABLE = (
    _key("python.executable").string_type().default_value("python").with_description("the Python that runs functions")
)
PYTHON_CLIENT_EXECUTABLE = _key("python.client.executable").string_type().default_value("python")
PYTHON_PATH = _key("python.pythonpath").string_type().no_default_value()
PYTHON_EXECUTION_MODE = _key("python.execution-mode").string_type().default_value("process")
PYTHON_BUNDLE_SIZE = _key("python.fn-execution.bundle.size").int_type().default_value(1000)
PYTHON_BUNDLE_TIME = _key("python.fn-execution.bundle.time").long_type().default_value(1000)
PYTHON_ARROW_BATCH_SIZE = _key("python.fn-execution.arrow.batch.size").int_type().default_value(1000)
PYTHON_STATE_CACHE_SIZE = _key("python.state.cache-size").int_type().default_value(1000)
PYTHON_MAP_READ_CACHE_SIZE = _key("python.map-state.read-cache-size").int_type().default_value(1000)
PYTHON_PROFILE = _key("python.profile.enabled").boolean_type().default_value(False)
PYTHON_CHAINING = (
    _key("python.operator-chaining.enabled")
    .boolean_type()
    .default_value(True)
    .with_description("false: the same as pipeline.operator-chaining.enabled, since all functions are Python")
)

KNOWN_OPTIONS: dict[str, ConfigOption[Any]] = {
    option.key: option for option in list(globals().values()) if isinstance(option, ConfigOption)
}
OLD_KEYS: dict[str, str] = {old: option.key for option in KNOWN_OPTIONS.values() for old in option.old_keys}

#: Flink keys that jobs and configurations may set although nothing here depends on them, each with the reason. All
#: others take effect: a test checks that each of them is read.
WITHOUT_EFFECT: dict[str, str] = {
    CHAIN_DIFFERENT_MAX_PARALLELISM.key: "operators are chained by the other rules alone",
    PARALLELISM_OVERRIDES.key: "set the parallelism in the program",
    CLOSURE_CLEANER_LEVEL.key: "there are no Java closures",
    FORCE_KRYO.key: "elements are pickled",
    FORCE_AVRO.key: "elements are pickled",
    GENERIC_TYPES.key: "elements are pickled",
    EXECUTION_MODE.key: "execution.runtime-mode chooses between streaming and batch",
    INPUT_DEPENDENCY_CONSTRAINT.key: "an operator starts with its first input",
    VERTEX_DESCRIPTION_MODE.key: "descriptions have one form",
    CHECKPOINT_INTERVAL_DURING_BACKLOG.key: "checkpoints are taken at their interval",
    CHECKPOINT_MODE.key: "checkpoints are always exactly once",
    MAX_CONCURRENT_CHECKPOINTS.key: "there is never more than one at a time",
    INCREMENTAL_CHECKPOINTS.key: "checkpoints always write only what changed",
    UNALIGNED_CHECKPOINTS.key: "epochs have nothing to align",
    FORCE_UNALIGNED.key: "epochs have nothing to align",
    ALIGNED_CHECKPOINT_TIMEOUT.key: "epochs have nothing to align",
    CHECKPOINTS_AFTER_TASKS_FINISH.key: "checkpoints continue when some tasks have finished",
    FILE_MERGING.key: "each subtask writes one file",
    TASK_CANCELLATION_INTERVAL.key: "a task is asked to end once",
    SCHEDULER.key: "there is one scheduler",
    SCHEDULER_MODE.key: "there are as many workers as Spark has room for",
    PYTHON_CLIENT_EXECUTABLE.key: "start penstock with the Python you want",
    PYTHON_PATH.key: "use python.files or PYTHONPATH",
    PYTHON_EXECUTION_MODE.key: "functions run in the workers",
    PYTHON_BUNDLE_SIZE.key: "records are not bundled",
    PYTHON_BUNDLE_TIME.key: "records are not bundled",
    PYTHON_ARROW_BATCH_SIZE.key: "there are no pandas functions",
    PYTHON_STATE_CACHE_SIZE.key: "state is in the same process",
    PYTHON_MAP_READ_CACHE_SIZE.key: "state is in the same process",
    PYTHON_PROFILE.key: "the dashboard has flame graphs",
}


def find_option(key: str) -> ConfigOption[Any] | None:
    """The option of a key, found by its name or an older one."""
    return KNOWN_OPTIONS.get(OLD_KEYS.get(key, key))
