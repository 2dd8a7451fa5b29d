package kipcheck;

import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.List;
import org.rocksdb.ColumnFamilyDescriptor;
import org.rocksdb.ColumnFamilyHandle;
import org.rocksdb.DBOptions;
import org.rocksdb.Options;
import org.rocksdb.ReadOptions;
import org.rocksdb.RocksDB;
import org.rocksdb.RocksDBException;
import org.rocksdb.RocksIterator;
import org.rocksdb.Status;

/**
 * Has RocksDB compare the checksums of all blocks of a store that is opened read only.
 *
 * <p>Arguments: the directory of the store, and one for RocksDB's own log. Prints {@code ready}, and then {@code verified FAMILIES TABLES all|keys}, or
 * {@code refused CODE REASON}, separated by tabs.
 */
public final class VerifyTables {
    private static final int LEVELS = 7;
    /** Fewer than a process may usually have open: a large store has thousands of tables. */
    private static final int OPEN_FILES = 256;

    private VerifyTables() {
    }

    public static void main(String[] arguments) throws ReflectiveOperationException {
        RocksDB.loadLibrary();
        System.out.println("ready");
        String line;
        try {
            line = verified(arguments[0], arguments[1]);
        } catch (RocksDBException refused) {
            Status status = refused.getStatus();
            line = "refused\t" + (status == null ? "None" : status.getCode()) + "\t" + refused.getMessage();
        }
        System.out.println(line.replace('\n', ' '));
    }

    private static String verified(String directory, String logs)
            throws RocksDBException, ReflectiveOperationException {
        List<ColumnFamilyDescriptor> families = new ArrayList<>();
        try (Options options = new Options()) {
            for (byte[] name : RocksDB.listColumnFamilies(options, directory)) {
                families.add(new ColumnFamilyDescriptor(name));
            }
        }
        List<ColumnFamilyHandle> handles = new ArrayList<>();
        try (DBOptions options = new DBOptions()) {
            options.setDbLogDir(logs).setMaxOpenFiles(OPEN_FILES);
            try (RocksDB db = RocksDB.openReadOnly(options, directory, families, handles)) {
                try {
                    long tables = tables(db, handles);
                    String how = verify(db, handles) ? "all" : "keys";
                    return "verified\t" + handles.size() + "\t" + tables + "\t" + how;
                } finally {
                    handles.forEach(ColumnFamilyHandle::close);
                }
            }
        }
    }

    private static long tables(RocksDB db, List<ColumnFamilyHandle> families) throws RocksDBException {
        long found = 0;
        for (ColumnFamilyHandle family : families) {
            for (int level = 0; level < LEVELS; level++) {
                found += Long.parseLong(db.getProperty(family, "rocksdb.num-files-at-level" + level));
            }
        }
        return found;
    }

    /** False where RocksDB is too old to verify all blocks, and reads all keys and values instead. */
    private static boolean verify(RocksDB db, List<ColumnFamilyHandle> families)
            throws RocksDBException, ReflectiveOperationException {
        Method method;
        try {
            method = RocksDB.class.getMethod("verifyChecksum");
        } catch (NoSuchMethodException old) {
            scan(db, families);
            return false;
        }
        try {
            method.invoke(db);
        } catch (InvocationTargetException thrown) {
            if (thrown.getCause() instanceof RocksDBException) {
                throw (RocksDBException) thrown.getCause();
            }
            throw thrown;
        }
        return true;
    }

    private static void scan(RocksDB db, List<ColumnFamilyHandle> families) throws RocksDBException {
        try (ReadOptions options = new ReadOptions().setVerifyChecksums(true).setFillCache(false)) {
            for (ColumnFamilyHandle family : families) {
                try (RocksIterator each = db.newIterator(family, options)) {
                    for (each.seekToFirst(); each.isValid(); each.next()) {
                        // The iterator verifies a block when it moves there.
                    }
                    // An iterator that met a damaged block looks like one at the end.
                    each.status();
                }
            }
        }
    }
}
