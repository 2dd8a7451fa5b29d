package kipcheck;

import java.lang.reflect.Method;
import java.nio.ByteBuffer;
import java.util.HashMap;
import java.util.Map;

/** Messages with a generated class that encodes and decodes itself: everything in Kafka's message JSON, from 2.4.0. */
final class Generated implements Codec {
    private static final String[] PLACES = {
        "org.apache.kafka.common.message.%sData", "org.apache.kafka.common.message.%s",
        "org.apache.kafka.coordinator.group.generated.%s", "org.apache.kafka.coordinator.transaction.generated.%s",
        "org.apache.kafka.common.metadata.%s", "kafka.internals.generated.%s",
    };

    /** The name up to 2.7, and the name since. */
    private static final String[] RENAMED = {"ListOffsetRe", "ListOffsetsRe"};
    private static final String[] SUFFIXES = {"JsonConverter", "MessageType", "RecordType"};

    private final Release release;
    private final Map<Class<?>, Shape> shapes = new HashMap<>();

    Generated(Release release) {
        this.release = release;
    }

    /** The message of a class in a jar, by the class's path; null for other classes. */
    static String message(String path) {
        int slash = path.lastIndexOf('/');
        String name = path.substring(slash + 1);
        for (String suffix : SUFFIXES) {
            if (name.endsWith(suffix)) {
                return null;
            }
        }
        for (String place : PLACES) {
            if (slash > 0 && place.startsWith(path.substring(0, slash).replace('/', '.') + ".%s")) {
                name = name.replace(RENAMED[0], RENAMED[1]);
                return place.endsWith("%sData") && name.endsWith("Data") ? name.substring(0, name.length() - 4) : name;
            }
        }
        return null;
    }

    /** Whether this release has such a class, with a codec in it (that of 2.2 and 2.3 differs). */
    boolean knows(String message) {
        return release.find("org.apache.kafka.common.protocol.ByteBufferAccessor") != null && find(message) != null;
    }

    @Override
    public ByteBuffer encode(String message, int version, Map<String, Object> value) throws Throwable {
        Form form = form(message, version);
        return form.write(Shape.of(form.type, shapes).read(value));
    }

    @Override
    public Map<String, Object> decode(String message, int version, ByteBuffer bytes) throws Throwable {
        Form form = form(message, version);
        return Shape.of(form.type, shapes).print(form.read(bytes), form.version);
    }

    @Override
    public ByteBuffer recode(String message, int version, ByteBuffer bytes) throws Throwable {
        Form form = form(message, version);
        return form.write(form.read(bytes));
    }

    @Override
    public int[] versions(String message) throws Throwable {
        Object sample = Release.create(need(message));
        int low = (Short) Release.call(sample, "lowestSupportedVersion");
        int high = (Short) Release.call(sample, "highestSupportedVersion");
        int key = recordKey(sample);
        return key >= 0 ? new int[] {message.equals("OffsetCommitKey") ? 0 : key, key} : new int[] {low, high};
    }

    /** The fields from which a struct class is created, and as which it is printed. */
    Object read(Class<?> type, Map<String, Object> value) throws Throwable {
        return Shape.of(type, shapes).read(value);
    }

    Map<String, Object> print(Object made, int version) throws Throwable {
        return Shape.of(made.getClass(), shapes).print(made, version);
    }

    private Class<?> find(String message) {
        for (String place : PLACES) {
            Class<?> found = release.find(String.format(place, message));
            if (found != null) {
                return found;
            }
        }
        String before = message.replace(RENAMED[1], RENAMED[0]);
        return before.equals(message) ? null : find(before);
    }

    private Class<?> need(String message) {
        Class<?> found = find(message);
        if (found == null) {
            throw new Release.Unsupported(release.name + " has no " + message);
        }
        return found;
    }

    private static int recordKey(Object sample) throws Throwable {
        boolean key = sample.getClass().getPackage().getName().contains(".coordinator.")
            && sample.getClass().getSimpleName().endsWith("Key");
        return key ? (Short) Release.call(sample, "apiKey") : -1;
    }

    private Form form(String message, int wanted) throws Throwable {
        Class<?> type = need(message);
        Object sample = Release.create(type);
        boolean prefixed = message.startsWith("ConsumerProtocol") || !type.getPackage().getName().contains(".common.");
        int version = wanted;
        int key = recordKey(sample);
        if (key >= 0) {
            // From 4.1 the number before a record's key is its type, no longer the version of its definition.
            if (wanted == 0 && key == 1 && message.equals("OffsetCommitKey")) {
                return form("LegacyOffsetCommitKey", wanted);
            }
            if (wanted != key) {
                throw new Release.Unsupported(release.name + " has " + message + " as " + key + " only");
            }
            version = 0;
        }
        int low = (Short) Release.call(sample, "lowestSupportedVersion");
        int high = (Short) Release.call(sample, "highestSupportedVersion");
        if (version < low || version > high) {
            throw new Release.Unsupported(release.name + " has " + message + " " + low + " to " + high);
        }
        return new Form(type, (short) version, (short) (prefixed ? wanted : -1), high);
    }

    /** A class at one version, with the number before its bytes, or -1. */
    private final class Form {
        final Class<?> type;
        final short version;
        final short prefix;
        final int newest;

        Form(Class<?> type, short version, short prefix, int newest) {
            this.type = type;
            this.newest = newest;
            this.version = version;
            this.prefix = prefix;
        }

        Object read(ByteBuffer bytes) throws Throwable {
            if (prefix >= 0) {
                short found = bytes.getShort();
                // Consumers decode versions above their newest one in its form.
                boolean later = found > prefix && prefix == newest && type.getSimpleName().startsWith("ConsumerProtocol");
                if (found != prefix && !later) {
                    throw new IllegalArgumentException("the bytes start with version " + found);
                }
            }
            Object made = Release.create(type);
            Release.call(made, "read", accessor(bytes), version);
            return made;
        }

        ByteBuffer write(Object made) throws Throwable {
            Object cache = Release.create(release.need("org.apache.kafka.common.protocol.ObjectSerializationCache"));
            int size = (Integer) Release.invoke(sizing(made), made, cache, version);
            ByteBuffer out = ByteBuffer.allocate(size + (prefix >= 0 ? 2 : 0));
            if (prefix >= 0) {
                out.putShort(prefix);
            }
            Release.call(made, "write", accessor(out), cache, version);
            if (out.hasRemaining()) {
                throw new IllegalStateException("size() is " + out.remaining() + " more than write() wrote");
            }
            out.flip();
            return out;
        }

        private Object accessor(ByteBuffer bytes) throws Throwable {
            return Release.create(release.need("org.apache.kafka.common.protocol.ByteBufferAccessor"), bytes);
        }
    }

    private Method sizing(Object made) throws NoSuchMethodException {
        // Declared by the class up to 2.6, inherited from the interface after that.
        return made.getClass().getMethod(
            "size", release.need("org.apache.kafka.common.protocol.ObjectSerializationCache"), short.class);
    }
}
