package main

import (
	"context"
	"fmt"
	"time"

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

func join(client *kgo.Client, member string) *kmsg.JoinGroupResponse {
	protocol := kmsg.NewJoinGroupRequestProtocol()
	protocol.Name = "range"
	request := kmsg.NewPtrJoinGroupRequest()
	request.Group, request.ProtocolType, request.MemberID = "g", "consumer", member
	request.SessionTimeoutMillis, request.RebalanceTimeoutMillis = 10000, 1000
	request.Protocols = append(request.Protocols, protocol)
	answer, err := request.RequestWith(context.Background(), client)
	if err != nil {
		panic(err)
	}
	return answer
}

func members(client *kgo.Client) int {
	describe := kmsg.NewPtrDescribeGroupsRequest()
	describe.Groups = []string{"g"}
	found, err := describe.RequestWith(context.Background(), client)
	if err != nil {
		panic(err)
	}
	return len(found.Groups[0].Members)
}

func main() {
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1))
	if err != nil {
		panic(err)
	}
	one, two, other := connect(cluster), connect(cluster), connect(cluster)
	join(one, join(one, "").MemberID)
	id := join(two, "").MemberID
	answered := make(chan int16)
	go func() { answered <- join(two, id).ErrorCode }()
	for members(other) < 2 {
	}
	member := kmsg.NewLeaveGroupRequestMember()
	member.MemberID = id
	leave := kmsg.NewPtrLeaveGroupRequest()
	leave.Group = "g"
	leave.Members = append(leave.Members, member)
	left, err := leave.RequestWith(context.Background(), other)
	if err != nil {
		panic(err)
	}
	fmt.Println("the member leaves: error", left.Members[0].ErrorCode)
	select {
	case code := <-answered:
		fmt.Println("its JoinGroup: error", code)
	case <-time.After(5 * time.Second):
		fmt.Println("its JoinGroup, 4 s after the rebalance timeout: no answer")
	}
}
