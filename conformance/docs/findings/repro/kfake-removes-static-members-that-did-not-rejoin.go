package main

import (
	"context"
	"fmt"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

func connect(cluster *kfake.Cluster) *kgo.Client {
	client, err := kgo.NewClient(kgo.SeedBrokers(cluster.ListenAddrs()...))
	if err != nil {
		panic(err)
	}
	return client
}

func join(client *kgo.Client, member string, instance *string) *kmsg.JoinGroupResponse {
	protocol := kmsg.NewJoinGroupRequestProtocol()
	protocol.Name = "range"
	request := kmsg.NewPtrJoinGroupRequest()
	request.Group, request.ProtocolType, request.MemberID = "g", "consumer", member
	request.SessionTimeoutMillis, request.RebalanceTimeoutMillis = 10000, 1000
	request.Protocols = append(request.Protocols, protocol)
	request.InstanceID = instance
	answer, err := request.RequestWith(context.Background(), client)
	if err != nil {
		panic(err)
	}
	return answer
}

func main() {
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1))
	if err != nil {
		panic(err)
	}
	one, two, instance := connect(cluster), connect(cluster), "i"
	static := join(one, "", &instance)
	joined := join(two, join(two, "", nil).MemberID, nil)
	fmt.Println("after a rebalance timeout of 1 s the group has", len(joined.Members), "member")
	beat := kmsg.NewPtrHeartbeatRequest()
	beat.Group, beat.MemberID, beat.InstanceID, beat.Generation = "g", static.MemberID, &instance, joined.Generation
	beaten, err := beat.RequestWith(context.Background(), one)
	if err != nil {
		panic(err)
	}
	fmt.Println("the static member, whose session lasts 10 s, sends a heartbeat: error", beaten.ErrorCode)
}
