import subprocess
import sys

PORT, JARS = sys.argv[1:] if sys.argv[2:] else ("9092", "kafka_2.13-4.0.2/libs/*")


def tool(*words):
    """Runs kafka-features.sh."""
    command = ["java", "-cp", JARS, "org.apache.kafka.tools.FeatureCommand", "--bootstrap-server", f"localhost:{PORT}"]
    done = subprocess.run([*command, *words], capture_output=True, text=True)
    print(*words, "exits with", done.returncode)
    for line in sorted(each for each in done.stdout.splitlines() if "downgrade" in each):
        print("   ", line.partition(". ")[0] if line.startswith("Could") else line)


tool("downgrade", "--release-version", "4.0-IV2")
tool("downgrade", "--feature", "metadata.version=24")
