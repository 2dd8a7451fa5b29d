package kipcheck;

import java.io.IOException;
import java.lang.reflect.Proxy;
import java.net.InetSocketAddress;
import java.nio.file.Path;
import java.util.List;

/** The ZooKeeper of a release, in this process and on loopback, and a client of it that reads and writes nodes. */
final class ZooKeeperServer {
    private static final String ZOOKEEPER = "org.apache.zookeeper.";
    private static final int TICK_MS = 2000;
    private static final int SESSION_MS = 40_000;
    private static final int ANY_VERSION = -1;

    private final Release release;
    final int port;
    private final Object client;

    ZooKeeperServer(Release release) throws Throwable {
        this.release = release;
        System.setProperty("zookeeper.forceSync", "no");
        Path folder = Temporary.folder("zookeeper");
        Object server = Release.create(release.need(ZOOKEEPER + "server.ZooKeeperServer"),
            folder.toFile(), folder.toFile(), TICK_MS);
        Object listener = Release.create(release.need(ZOOKEEPER + "server.NIOServerCnxnFactory"));
        Release.call(listener, "configure", new InetSocketAddress("127.0.0.1", 0), 0);
        Release.call(listener, "startup", server);
        port = (Integer) Release.call(listener, "getLocalPort");
        Class<?> watcher = release.need(ZOOKEEPER + "Watcher");
        Object none = Proxy.newProxyInstance(watcher.getClassLoader(), new Class<?>[] {watcher}, new InterfaceStub());
        client = Release.create(release.need(ZOOKEEPER + "ZooKeeper"), address(), SESSION_MS, none);
        for (int tries = 0; !String.valueOf(Release.call(client, "getState")).equals("CONNECTED"); tries++) {
            if (tries > SESSION_MS / 10) {
                throw new IOException("ZooKeeper does not answer");
            }
            Thread.sleep(10);
        }
    }

    String address() {
        return "127.0.0.1:" + port;
    }

    /** A node with its version. */
    record Node(byte[] data, int version) {
    }

    /** Null if the node does not exist. */
    Node get(String path) throws Throwable {
        Object stat = Release.create(release.need(ZOOKEEPER + "data.Stat"));
        try {
            byte[] data = (byte[]) Release.call(client, "getData", path, false, stat);
            return new Node(data, (Integer) Release.call(stat, "getVersion"));
        } catch (Exception thrown) {
            if (thrown.getClass().getSimpleName().equals("NoNodeException")) {
                return null;
            }
            throw thrown;
        }
    }

    /** Writes the node whatever its version, and creates it if it does not exist. */
    void put(String path, byte[] data) throws Throwable {
        if (get(path) != null) {
            Release.call(client, "setData", path, data, ANY_VERSION);
            return;
        }
        Object everybody = release.need(ZOOKEEPER + "ZooDefs$Ids").getField("OPEN_ACL_UNSAFE").get(null);
        Object persistent = release.need(ZOOKEEPER + "CreateMode").getField("PERSISTENT").get(null);
        Release.call(client, "create", path, data, (List<?>) everybody, persistent);
    }

    /** Nothing happens if the node does not exist. */
    void delete(String path) throws Throwable {
        if (get(path) != null) {
            Release.call(client, "delete", path, ANY_VERSION);
        }
    }
}
