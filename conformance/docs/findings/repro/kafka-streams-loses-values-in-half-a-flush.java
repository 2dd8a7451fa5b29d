import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.*;
import java.util.*;
import java.util.stream.Stream;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.processor.StateStore;
import org.apache.kafka.streams.processor.TaskId;
import org.apache.kafka.streams.processor.api.MockProcessorContext;
import org.apache.kafka.streams.state.*;
import org.rocksdb.*;

public class HalfFlushed {
    static Path directory, left;

    static <S extends StateStore> S open(StoreBuilder<S> builder) {
        Properties config = new Properties();
        config.putAll(Map.of("application.id", "app", "bootstrap.servers", "localhost:1"));
        config.put("rocksdb.config.setter", KillsBetweenFlushes.class);
        S store = builder.withLoggingDisabled().build();
        var context = new MockProcessorContext<>(config, new TaskId(0, 0), directory.toFile());
        store.init(context.getStateStoreContext(), store);
        return store;
    }

    static KeyValueStore<String, String> plain() {
        return open(Stores.keyValueStoreBuilder(
            Stores.persistentKeyValueStore("store"), Serdes.String(), Serdes.String()));
    }

    static TimestampedKeyValueStore<String, String> timestamped() {
        return open(Stores.timestampedKeyValueStoreBuilder(
            Stores.persistentTimestampedKeyValueStore("store"), Serdes.String(), Serdes.String()));
    }

    public static void main(String[] none) throws IOException {
        Path place = Files.createTempDirectory("stores");
        directory = place.resolve("before");
        KeyValueStore<String, String> old = plain();
        old.put("key", "value");
        old.close();
        left = place.resolve("left");
        TimestampedKeyValueStore<String, String> store = timestamped();
        System.out.println("after the upgrade: " + store.get("key"));
        store.flush();
        System.out.println("after the flush: " + store.get("key"));
        store.close();
        directory = left;
        store = timestamped();
        System.out.println("killed within it: " + store.get("key"));
        store.close();
    }

    /** Keeps the files as they are once the first column family is flushed: kill -9 would leave them so. */
    public static class KillsBetweenFlushes implements RocksDBConfigSetter {
        @Override
        public void setConfig(String store, Options options, Map<String, Object> configs) {
            options.setListeners(List.of(new AbstractEventListener() {
                @Override
                public void onFlushCompleted(RocksDB db, FlushJobInfo flush) {
                    if (left != null && !Files.exists(left)) {
                        copy();
                    }
                }
            }));
        }

        @Override
        public void close(String store, Options options) {
        }

        static void copy() {
            try (Stream<Path> files = Files.walk(directory)) {
                for (Path each : (Iterable<Path>) files::iterator) {
                    Files.copy(each, left.resolve(directory.relativize(each)));
                }
            } catch (IOException wrong) {
                throw new UncheckedIOException(wrong);
            }
        }
    }
}
