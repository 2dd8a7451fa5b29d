// Serves kfake, the broker of franz-go, until the end of standard input.
//
// Arguments: the bounds of session timeouts, in milliseconds.
package main

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
)

func main() {
	least, longest := milliseconds(1), milliseconds(2)
	cluster, err := kfake.NewCluster(
		kfake.NumBrokers(1),
		kfake.GroupMinSessionTimeout(least),
		kfake.GroupMaxSessionTimeout(longest),
	)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	defer cluster.Close()
	fmt.Println("listening", cluster.ListenAddrs()[0])
	io.Copy(io.Discard, os.Stdin)
}

func milliseconds(at int) time.Duration {
	number, err := strconv.Atoi(os.Args[at])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	return time.Duration(number) * time.Millisecond
}
