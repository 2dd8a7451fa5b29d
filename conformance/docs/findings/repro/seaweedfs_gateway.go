// SeaweedFS's Kafka gateway with the stand-in for its message queue that the module has for tests. To build it:
//
//	go mod init gateway
//	go mod edit -replace github.com/tyler-smith/go-bip39=github.com/cosmos/go-bip39@v1.0.0
//	go get github.com/seaweedfs/seaweedfs/weed/mq/kafka/gateway@v0.0.0-20261109003541-7506e5f91cd6 && go build -o gateway .
package main

import (
	"log"

	"github.com/seaweedfs/seaweedfs/weed/mq/kafka/gateway"
)

func main() {
	server := gateway.NewTestServerForUnitTests(gateway.Options{Listen: "127.0.0.1:9092"})
	if err := server.Start(); err != nil {
		log.Fatal(err)
	}
	select {}
}
