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

func join(client *kgo.Client, member string) *kmsg.JoinGroupResponse {
	protocol := kmsg.NewJoinGroupRequestProtocol()
	protocol.Name = "range"
	request := kmsg.NewPtrJoinGroupRequest()
	request.Group, request.ProtocolType, request.MemberID = "g", "consumer", member
	request.SessionTimeoutMillis, request.RebalanceTimeoutMillis = 10000, 10000
	request.Protocols = append(request.Protocols, protocol)
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
	leader := join(connect(cluster), "")
	leader = join(connect(cluster), leader.MemberID)
	answers := make(chan *kmsg.JoinGroupResponse)
	for range 2 {
		client := connect(cluster)
		id := join(client, "").MemberID
		go func() { answers <- join(client, id) }()
	}
	// Both wait for the leader, which leaves.
	for described := 0; described < 3; {
		describe := kmsg.NewPtrDescribeGroupsRequest()
		describe.Groups = []string{"g"}
		found, err := describe.RequestWith(context.Background(), connect(cluster))
		if err != nil {
			panic(err)
		}
		described = len(found.Groups[0].Members)
	}
	member := kmsg.NewLeaveGroupRequestMember()
	member.MemberID = leader.MemberID
	leave := kmsg.NewPtrLeaveGroupRequest()
	leave.Group = "g"
	leave.Members = append(leave.Members, member)
	if _, err := leave.RequestWith(context.Background(), connect(cluster)); err != nil {
		panic(err)
	}
	for range 2 {
		answer := <-answers
		fmt.Println("generation", answer.Generation, "leads:", answer.LeaderID == answer.MemberID, "members:", len(answer.Members))
	}
}
