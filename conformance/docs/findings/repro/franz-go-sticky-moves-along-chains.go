package main

import (
	"fmt"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

func member(name string, topics []string, owned map[string][]int32) kmsg.JoinGroupResponseMember {
	metadata := kgo.CooperativeStickyBalancer().JoinGroupMetadata(topics, owned, 10)
	return kmsg.JoinGroupResponseMember{MemberID: name, ProtocolMetadata: metadata}
}

func main() {
	all, two := []string{"t0", "t1", "t2"}, []string{"t1", "t2"}
	group := []kmsg.JoinGroupResponseMember{
		member("a", all, map[string][]int32{"t2": {1, 2}}), member("b", all, map[string][]int32{"t0": {0, 1, 2}}),
		member("c", two, map[string][]int32{"t1": {0}}), member("d", two, map[string][]int32{"t2": {0}}),
	}
	balancer, _, _ := kgo.CooperativeStickyBalancer().MemberBalancer(group)
	topics := map[string]int32{"t0": 3, "t1": 1, "t2": 3}
	plan, _ := balancer.(kgo.GroupMemberBalancerOrError).BalanceOrError(topics)
	for _, share := range plan.IntoSyncAssignment() {
		partitions, _ := kgo.ParseConsumerSyncAssignment(share.MemberAssignment)
		count := 0
		for _, each := range partitions {
			count += len(each)
		}
		fmt.Println(share.MemberID, count)
	}
}
