"""Builds SeaweedFS's Kafka gateway, for findings: the module's protocol code, with its stand-in for the message queue.

``go install`` refuses the module because of a ``replace`` directive, so the program's ``go.mod`` has the same one.
"""

from pathlib import Path
from typing import Final

from kipcheck.conformance.core.values.replacing import replace
from kipcheck.conformance.targets.toolchains import build, go

NAME: Final = "seaweedfs"
MODULE: Final = "github.com/seaweedfs/seaweedfs"
REPLACED: Final = "github.com/tyler-smith/go-bip39 => github.com/cosmos/go-bip39 v1.0.0"
MINUTES: Final = 2
"""656 packages, which took 1:28 on two cores."""
MAIN: Final = f"""\
package main

import (
	"fmt"
	"io"
	"os"

	"{MODULE}/weed/mq/kafka/gateway"
)

func main() {{
	server := gateway.NewTestServerForUnitTests(gateway.Options{{Listen: "127.0.0.1:0"}})
	if err := server.Start(); err != nil {{
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}}
	fmt.Println("listening", server.Addr())
	io.Copy(io.Discard, os.Stdin)
}}
"""


def command(release: str) -> tuple[str, ...]:
    """The gateway of that version of the module, built if needed. Errors: ``Unavailable``."""
    made = go.recipe(f"SeaweedFS's gateway {release}", {MODULE: release}, {"main.go": MAIN})
    declared = f"module kipcheck/gateway\n\ngo {go.LANGUAGE}\n\nreplace {REPLACED}\n"
    recipe = replace(made, texts={**made.texts, "go.mod": declared}, minutes=MINUTES)
    folder: Path = build.built(f"live-{NAME}", release, recipe)
    return (str(folder / go.PROGRAM),)
