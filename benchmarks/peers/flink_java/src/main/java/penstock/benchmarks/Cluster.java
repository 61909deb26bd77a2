package penstock.benchmarks;

import java.util.stream.Stream;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.configuration.DeploymentOptions;
import org.apache.flink.configuration.MemorySize;
import org.apache.flink.configuration.PipelineOptions;
import org.apache.flink.configuration.TaskManagerOptions;
import org.apache.flink.core.execution.PipelineExecutor;
import org.apache.flink.core.execution.PipelineExecutorFactory;
import org.apache.flink.core.execution.PipelineExecutorServiceLoader;
import org.apache.flink.runtime.minicluster.MiniCluster;
import org.apache.flink.runtime.minicluster.MiniClusterConfiguration;
import org.apache.flink.runtime.minicluster.MiniClusterJobClient;
import org.apache.flink.runtime.minicluster.MiniClusterJobClient.JobFinalizationBehavior;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.graph.StreamGraph;

/** A cluster in this JVM that all runs share: a local environment would start one anew for each job. */
final class Cluster implements PipelineExecutorFactory, AutoCloseable {

    private static final String NAME = "benchmark";

    private final MiniCluster cluster;
    private final int parallelism;

    Cluster(int parallelism) throws Exception {
        this.parallelism = parallelism;
        this.cluster =
                new MiniCluster(
                        new MiniClusterConfiguration.Builder()
                                .setConfiguration(memory())
                                .setNumTaskManagers(1)
                                .setNumSlotsPerTaskManager(parallelism)
                                .withRandomPorts()
                                .build());
        cluster.start();
    }

    private static Configuration memory() {
        Configuration configuration = new Configuration();
        configuration.set(TaskManagerOptions.NETWORK_MEMORY_MIN, MemorySize.ofMebiBytes(256));
        configuration.set(TaskManagerOptions.NETWORK_MEMORY_MAX, MemorySize.ofMebiBytes(256));
        // For RocksDB; state on the heap leaves it alone.
        configuration.set(TaskManagerOptions.MANAGED_MEMORY_SIZE, MemorySize.ofMebiBytes(512));
        return configuration;
    }

    /** For a job of this cluster. */
    StreamExecutionEnvironment environment(Setting setting) {
        Configuration configuration = Configuration.fromMap(setting.config());
        configuration.set(DeploymentOptions.TARGET, NAME);
        configuration.set(DeploymentOptions.ATTACHED, true);
        configuration.set(PipelineOptions.OBJECT_REUSE, true);
        StreamExecutionEnvironment env =
                new StreamExecutionEnvironment(new OnlyThis(this), configuration, Cluster.class.getClassLoader());
        env.setParallelism(parallelism);
        return env;
    }

    @Override
    public String getName() {
        return NAME;
    }

    @Override
    public boolean isCompatibleWith(Configuration configuration) {
        return NAME.equals(configuration.get(DeploymentOptions.TARGET));
    }

    @Override
    public PipelineExecutor getExecutor(Configuration configuration) {
        return (pipeline, settings, classes) ->
                cluster.submitJob(((StreamGraph) pipeline).getJobGraph(classes))
                        .thenApply(
                                job ->
                                        new MiniClusterJobClient(
                                                job.getJobID(), cluster, classes, JobFinalizationBehavior.NOTHING));
    }

    @Override
    public void close() throws Exception {
        cluster.close();
    }

    private record OnlyThis(Cluster cluster) implements PipelineExecutorServiceLoader {

        @Override
        public PipelineExecutorFactory getExecutorFactory(Configuration configuration) {
            return cluster;
        }

        @Override
        public Stream<String> getExecutorNames() {
            return Stream.of(NAME);
        }
    }
}
