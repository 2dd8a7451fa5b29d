package kipcheck;

import java.io.File;
import java.lang.reflect.Constructor;
import java.lang.reflect.InvocationHandler;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.util.HashMap;
import java.util.Map;
import java.util.Optional;

/** The context in which Streams opens a state store: a task without a processor, whose directory is given. */
final class StoreContext implements InvocationHandler {
    /** Reports flushes, where it could be compiled for the release. */
    static final String WATCH = "kipcheck.FlushWatch";
    private static final String INTERNALS = "org.apache.kafka.streams.processor.internals.";

    private final Release release;
    private final File directory;
    private final Object metrics;
    private final Object task;
    private final Object settings;
    private final Object proxy;
    private Object callback;

    StoreContext(Release release, File directory) throws Throwable {
        this.release = release;
        this.directory = directory;
        this.metrics = metrics();
        this.task = Release.create(release.need("org.apache.kafka.streams.processor.TaskId"), 0, 0);
        Map<String, Object> given = new HashMap<>(
            Map.of("application.id", "kipcheck", "bootstrap.servers", "127.0.0.1:1"));
        if (release.find(WATCH) != null) {
            given.put("rocksdb.config.setter", release.need(WATCH));
        }
        this.settings = Release.call(
            Release.create(release.need("org.apache.kafka.streams.StreamsConfig"), given), "values");
        this.proxy = Proxy.newProxyInstance(
            release.loader, new Class<?>[] {release.need(INTERNALS + "InternalProcessorContext")}, this);
    }

    Object proxy() {
        return proxy;
    }

    /** What the store registered to be called with records of its changelog. */
    Object callback() {
        return callback;
    }

    private Object metrics() throws Throwable {
        Class<?> type = release.find(INTERNALS + "metrics.StreamsMetricsImpl");
        if (type == null) {
            return null; // stores of these releases have no metrics of their own
        }
        Constructor<?> made = Release.widest(type);
        Object[] arguments = new Object[made.getParameterCount()];
        for (int i = 0; i < arguments.length; i++) {
            Class<?> wanted = made.getParameterTypes()[i];
            if (wanted == String.class) {
                // The version of the metrics, in the releases with a choice; elsewhere any text will do.
                arguments[i] = "latest";
            } else if (wanted.getName().endsWith(".Metrics")) {
                arguments[i] = Release.create(wanted);
            } else if (wanted.getName().endsWith(".Time")) {
                arguments[i] = Release.need(wanted, "SYSTEM").get(null);
            }
        }
        return Release.create(made, arguments);
    }

    @Override
    public Object invoke(Object self, Method method, Object[] arguments) throws Throwable {
        switch (method.getName()) {
            case "stateDir":
                return directory;
            case "metrics":
                return metrics;
            case "taskId":
                return task;
            case "applicationId":
                return "kipcheck";
            case "appConfigs":
                return settings;
            case "appConfigsWithPrefix":
                return new HashMap<String, Object>();
            case "register":
                // Up to 1.1 a flag stands between the store and the callback; later ones have a further callback behind it.
                callback = arguments[1] instanceof Boolean ? arguments[2] : arguments[1];
                return null;
            case "recordMetadata":
                return Optional.empty();
            case "changelogFor":
                return "changelog";
            case "hashCode":
                return System.identityHashCode(self);
            case "equals":
                return self == arguments[0];
            case "toString":
                return "the context of a store";
            default:
                return nothing(method.getReturnType());
        }
    }

    private static Object nothing(Class<?> type) {
        if (type == boolean.class) {
            return false;
        }
        if (type == long.class) {
            return 0L;
        }
        return type == int.class ? (Object) 0 : null;
    }
}
