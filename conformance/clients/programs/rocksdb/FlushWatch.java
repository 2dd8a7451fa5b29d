package kipcheck;

import java.util.List;
import java.util.Map;
import org.apache.kafka.streams.state.RocksDBConfigSetter;
import org.rocksdb.AbstractEventListener;
import org.rocksdb.AbstractEventListener.EnabledEventCallback;
import org.rocksdb.FlushJobInfo;
import org.rocksdb.Options;
import org.rocksdb.RocksDB;

/** Reports the flush of each column family, before the next one begins. */
public final class FlushWatch implements RocksDBConfigSetter {
    /** What runs then, in a thread of RocksDB; null for nothing. */
    public static volatile Runnable flushed;

    @Override
    public void setConfig(String store, Options options, Map<String, Object> configs) {
        // Then files do not change while what is there after a flush is copied.
        options.setDisableAutoCompactions(true);
        options.setListeners(List.of(new AbstractEventListener(EnabledEventCallback.ON_FLUSH_COMPLETED) {
            @Override
            public void onFlushCompleted(RocksDB db, FlushJobInfo flush) {
                Runnable wanted = flushed;
                if (wanted != null) {
                    wanted.run();
                }
            }
        }));
    }

    @Override
    public void close(String store, Options options) {
    }
}
