package main

import (
	"context"
	"fmt"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

func main() {
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1))
	if err != nil {
		panic(err)
	}
	client, err := kgo.NewClient(kgo.SeedBrokers(cluster.ListenAddrs()...))
	if err != nil {
		panic(err)
	}
	protocol := kmsg.NewJoinGroupRequestProtocol()
	protocol.Name = "range"
	join := kmsg.NewPtrJoinGroupRequest()
	join.Group, join.ProtocolType = "g", "consumer"
	join.SessionTimeoutMillis, join.RebalanceTimeoutMillis = 10000, 10000
	join.Protocols = append(join.Protocols, protocol)
	joined, err := join.RequestWith(context.Background(), client) // MEMBER_ID_REQUIRED
	if err != nil {
		panic(err)
	}
	join.MemberID = joined.MemberID
	if joined, err = join.RequestWith(context.Background(), client); err != nil {
		panic(err)
	}
	assignment := kmsg.NewSyncGroupRequestGroupAssignment()
	assignment.MemberID = joined.MemberID
	sync := kmsg.NewPtrSyncGroupRequest()
	sync.Group, sync.Generation, sync.MemberID = "g", joined.Generation, joined.MemberID
	sync.GroupAssignment = append(sync.GroupAssignment, assignment)
	synced, err := sync.RequestWith(context.Background(), client)
	if err != nil {
		panic(err)
	}
	fmt.Printf("the leader assigns 0 bytes, the member gets %d: %x\n", len(synced.MemberAssignment), synced.MemberAssignment)
}
