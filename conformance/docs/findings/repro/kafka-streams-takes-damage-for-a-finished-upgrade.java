import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import java.util.Properties;
import java.util.stream.Stream;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.processor.StateStore;
import org.apache.kafka.streams.processor.TaskId;
import org.apache.kafka.streams.processor.api.MockProcessorContext;
import org.apache.kafka.streams.state.*;
import org.rocksdb.RocksDBException;

public class DamagedTable {
    static Path directory;

    static <S extends StateStore> S open(StoreBuilder<S> builder) {
        Properties config = new Properties();
        config.putAll(Map.of("application.id", "app", "bootstrap.servers", "localhost:1"));
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

    /** Changes the first letter of the value in the table that has it. */
    static void damage() throws IOException {
        try (Stream<Path> files = Files.walk(directory)) {
            for (Path each : (Iterable<Path>) files.filter(file -> file.toString().endsWith(".sst"))::iterator) {
                byte[] bytes = Files.readAllBytes(each);
                int at = new String(bytes, StandardCharsets.ISO_8859_1).indexOf("apple");
                if (at >= 0) {
                    bytes[at] ^= 1;
                    Files.write(each, bytes);
                    System.out.println("one byte is changed");
                }
            }
        }
    }

    public static void main(String[] none) throws IOException {
        directory = Files.createTempDirectory("stores");
        KeyValueStore<String, String> old = plain();
        old.put("key", "apple");
        old.close();
        damage();
        old = plain();
        try {
            System.out.println("without timestamps: " + old.get("key"));
        } catch (RuntimeException refused) {
            Throwable why = refused;
            while (!(why instanceof RocksDBException)) {
                why = why.getCause();
            }
            System.out.println("without timestamps: an error, " + why.getMessage().split(":")[0]);
        }
        old.close();
        TimestampedKeyValueStore<String, String> store = timestamped();
        System.out.println("with timestamps: " + store.get("key"));
        store.close();
    }
}
