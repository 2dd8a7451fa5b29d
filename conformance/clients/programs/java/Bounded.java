package kipcheck;

import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicReferenceArray;
import java.util.function.Function;

/**
 * Runs cases one after another in a thread, each with a limit on processor time and on wall time.
 *
 * <p>A case past its limit gets a result with the stack of its thread as evidence, and the next cases run in a new
 * thread. The old thread is interrupted, which some of the stubs check, else stopped where the JVM still can (up to
 * Java 19). Otherwise it keeps spinning; when more than one such thread is left, the process ends as one that exceeded
 * its processor time.
 */
final class Bounded {
    /** Where no signal can be sent. */
    private static final int HUNG = 86;
    private static final int SPINNING = 1;
    private static final long LOOK_MILLISECONDS = 20;
    private static final long HEED_MILLISECONDS = 100;
    private static final long STOP_MILLISECONDS = 300;
    private static final int EVIDENCE = 6_000;

    private final ThreadMXBean clock = ManagementFactory.getThreadMXBean();
    private final List<Thread> abandoned = new ArrayList<>();

    /** One result for each case. */
    List<Object> results(
            List<Object> cases, Function<Map<String, Object>, Map<String, Object>> hold, long cpu, long wall) {
        AtomicReferenceArray<Object> found = new AtomicReferenceArray<>(cases.size());
        int done = 0;
        while (done < cases.size()) {
            Work work = new Work(cases, done, found, hold);
            work.start();
            done = watch(work, found, cases, cpu, wall);
        }
        List<Object> results = new ArrayList<>();
        for (int i = 0; i < found.length(); i++) {
            results.add(found.get(i));
        }
        return results;
    }

    /** Waits until the thread is done or must be given up; returns the number of cases answered by then. */
    private int watch(Work work, AtomicReferenceArray<Object> found, List<Object> cases, long cpu, long wall) {
        int seen = -1;
        long cpuBefore = 0;
        long wallBefore = 0;
        while (true) {
            join(work, LOOK_MILLISECONDS);
            if (!work.isAlive()) {
                return work.at < cases.size() ? gone(work, found, cases) : work.at;
            }
            int at = work.at;
            long cpuNow = Math.max(0, clock.getThreadCpuTime(work.getId()) / 1_000_000);
            long wallNow = System.nanoTime() / 1_000_000;
            if (at != seen) {
                seen = at;
                cpuBefore = cpuNow;
                wallBefore = wallNow;
                continue;
            }
            boolean spins = cpuNow - cpuBefore > cpu;
            if (spins || wallNow - wallBefore > wall) {
                Object n = Values.object(cases.get(at)).get("n");
                String why = spins ? "more than " + cpu + " ms of processor time" : "no answer within " + wall + " ms";
                if (found.compareAndSet(at, null, hung(n, why, stack(work)))) {
                    end(work);
                    return at + 1;
                }
            }
        }
    }

    /** The thread ended within a case, and no result could be made. */
    private static int gone(Work work, AtomicReferenceArray<Object> found, List<Object> cases) {
        Map<String, Object> result = new LinkedHashMap<>();
        result.put("n", Values.object(cases.get(work.at)).get("n"));
        result.put("status", "internal");
        result.put("class", "java.lang.Thread");
        result.put("message", "the thread of this case has ended");
        found.compareAndSet(work.at, null, result);
        return work.at + 1;
    }

    private void end(Thread spinning) {
        spinning.interrupt();
        join(spinning, HEED_MILLISECONDS);
        if (spinning.isAlive()) {
            stop(spinning);
        }
        if (abandoned.size() > SPINNING) {
            System.err.println(abandoned.size() + " threads are past their deadline, and cannot be stopped");
            System.err.flush();
            leave();
        }
    }

    private void stop(Thread spinning) {
        try {
            // Without naming the method, since later JVMs lack it or refuse it.
            Thread.class.getMethod("stop").invoke(spinning);
            join(spinning, STOP_MILLISECONDS);
        } catch (ReflectiveOperationException cannot) {
            spinning.setPriority(Thread.MIN_PRIORITY);
        }
        abandoned.add(spinning);
        abandoned.removeIf(each -> !each.isAlive());
    }

    private static void leave() {
        try {
            // The signal of a process that has exceeded its processor time.
            new ProcessBuilder("sh", "-c", "kill -PROF " + ProcessHandle.current().pid()).start().waitFor();
            Thread.sleep(STOP_MILLISECONDS);
        } catch (IOException | InterruptedException cannot) {
            System.err.println(cannot);
        }
        Runtime.getRuntime().halt(HUNG);
    }

    private static void join(Thread thread, long milliseconds) {
        try {
            thread.join(milliseconds);
        } catch (InterruptedException never) {
            throw new IllegalStateException(never);
        }
    }

    private static Map<String, Object> hung(Object n, String why, String stack) {
        System.err.println("a case passed its deadline: " + why + "\n" + stack);
        System.err.flush();
        Map<String, Object> result = new LinkedHashMap<>();
        result.put("n", n);
        result.put("status", "died");
        result.put("cause", "timeout");
        result.put("message", why);
        result.put("evidence", stack);
        return result;
    }

    private static String stack(Thread thread) {
        StringBuilder out = new StringBuilder("\"" + thread.getName() + "\" " + thread.getState());
        for (StackTraceElement each : thread.getStackTrace()) {
            if (out.length() > EVIDENCE || each.getClassName().startsWith("jdk.internal.reflect.")) {
                continue;
            }
            out.append("\n    at ").append(each);
        }
        return out.toString();
    }

    /** The thread of the cases. */
    private static final class Work extends Thread {
        /** The case that is running. */
        volatile int at;
        private final List<Object> cases;
        private final AtomicReferenceArray<Object> found;
        private final Function<Map<String, Object>, Map<String, Object>> hold;

        Work(
                List<Object> cases, int first, AtomicReferenceArray<Object> found,
                Function<Map<String, Object>, Map<String, Object>> hold) {
            super("case");
            setDaemon(true);
            this.cases = cases;
            this.at = first;
            this.found = found;
            this.hold = hold;
        }

        @Override
        public void run() {
            while (at < cases.size()) {
                Map<String, Object> result = hold.apply(Values.object(cases.get(at)));
                if (!found.compareAndSet(at, null, result)) {
                    return;
                }
                at++;
            }
        }
    }
}
