package main

import (
	"fmt"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

func main() {
	owned := map[string][]int32{"t": {2, 3}}
	metadata := kgo.CooperativeStickyBalancer().JoinGroupMetadata([]string{"t"}, owned, 5)
	var subscription kmsg.ConsumerMemberMetadata
	if err := subscription.ReadFrom(metadata); err != nil {
		panic(err)
	}
	fmt.Printf("%x\n", subscription.UserData)
}
