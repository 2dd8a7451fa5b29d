package main

import (
	"fmt"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

func member(name string, generation int32) kmsg.JoinGroupResponseMember {
	owned := map[string][]int32{"t": {0, 1}}
	metadata := kgo.StickyBalancer().JoinGroupMetadata([]string{"t", "u"}, owned, generation)
	return kmsg.JoinGroupResponseMember{MemberID: name, ProtocolMetadata: metadata}
}

func main() {
	group := []kmsg.JoinGroupResponseMember{member("new", 9), member("old", 8)}
	balancer, _, _ := kgo.StickyBalancer().MemberBalancer(group)
	topics := map[string]int32{"t": 2, "u": 1}
	plan, _ := balancer.(kgo.GroupMemberBalancerOrError).BalanceOrError(topics)
	for _, share := range plan.IntoSyncAssignment() {
		partitions, _ := kgo.ParseConsumerSyncAssignment(share.MemberAssignment)
		fmt.Println(share.MemberID, len(partitions["t"]), "of t and", len(partitions["u"]), "of u")
	}
}
