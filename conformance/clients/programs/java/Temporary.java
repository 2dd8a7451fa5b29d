package kipcheck;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;

/** Folders for temporary files. Their names have the process, so that kipcheck removes those of killed ones. */
final class Temporary {
    private Temporary() {}

    /** {@code kipcheck-KIND-PID-SPACE-...}: a number of a process is one of its space, of which a container has its own. */
    static Path folder(String kind) throws IOException {
        return Files.createTempDirectory("kipcheck-" + kind + "-" + process());
    }

    private static String process() {
        try {
            String space = Files.readSymbolicLink(Path.of("/proc/self/ns/pid")).toString().replaceAll("[^0-9]", "");
            return Files.readSymbolicLink(Path.of("/proc/self")) + "-" + space + "-";
        } catch (IOException | RuntimeException nowhere) {
            return "";
        }
    }
}
