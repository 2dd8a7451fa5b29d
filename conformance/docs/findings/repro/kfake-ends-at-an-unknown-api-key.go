package main

import (
	"fmt"
	"io"
	"net"

	"github.com/twmb/franz-go/pkg/kfake"
)

func main() {
	cluster, err := kfake.NewCluster()
	if err != nil {
		panic(err)
	}
	connection, err := net.Dial("tcp", cluster.ListenAddrs()[0])
	if err != nil {
		panic(err)
	}
	// Size, API key -1, version 0, correlation id 7, client id null.
	fmt.Println("sends a request with API key -1")
	connection.Write([]byte{0, 0, 0, 10, 255, 255, 0, 0, 0, 0, 0, 7, 255, 255})
	io.ReadAll(connection)
	fmt.Println("the connection was closed, and the broker runs on")
}
