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
	request.SessionTimeoutMillis, request.RebalanceTimeoutMillis = 10000, 10000
	request.Protocols = append(request.Protocols, protocol)
	request.InstanceID = instance
	answer, err := request.RequestWith(context.Background(), client)
	if err != nil {
		panic(err)
	}
	return answer
}

func leave(client *kgo.Client, id string, instance *string) kmsg.LeaveGroupResponseMember {
	member := kmsg.NewLeaveGroupRequestMember()
	member.MemberID, member.InstanceID = id, instance
	request := kmsg.NewPtrLeaveGroupRequest()
	request.Group = "g"
	request.Members = append(request.Members, member)
	answer, err := request.RequestWith(context.Background(), client)
	if err != nil {
		panic(err)
	}
	return answer.Members[0]
}

func main() {
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1))
	if err != nil {
		panic(err)
	}
	client, instance := connect(cluster), "i"
	replaced := join(client, "", &instance).MemberID
	current := join(client, "", &instance).MemberID
	left := leave(client, replaced, &instance)
	fmt.Println("the replaced member leaves: error", left.ErrorCode, "- answered for the current one:", left.MemberID == current)
	again := join(client, current, &instance)
	fmt.Println("the current member joins again: error", again.ErrorCode)
}
