package main

import (
	"encoding/hex"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

func main() {
	data, _ := hex.DecodeString("0100000000" + "0100" + "ffffffff0f")
	request := kmsg.NewPtrHeartbeatRequest()
	request.SetVersion(4)
	done := make(chan error, 1)
	go func() { done <- request.ReadFrom(data) }()
	select {
	case err := <-done:
		fmt.Println(err)
	case <-time.After(2 * time.Second):
		fmt.Println("no answer after 2 s")
	}
}
