package main

import (
	"fmt"

	"github.com/twmb/franz-go/pkg/kmsg"
)

func main() {
	request := kmsg.NewPtrHeartbeatRequest()
	request.InstanceID = kmsg.StringPtr("i")
	request.SetVersion(2)
	fmt.Printf("%x\n", request.AppendTo(nil))
}
