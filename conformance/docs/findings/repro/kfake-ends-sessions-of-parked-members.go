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

func join(client *kgo.Client, member string, session int32) *kmsg.JoinGroupResponse {
	protocol := kmsg.NewJoinGroupRequestProtocol()
	protocol.Name = "range"
	request := kmsg.NewPtrJoinGroupRequest()
	request.Group, request.ProtocolType, request.MemberID = "g", "consumer", member
	request.SessionTimeoutMillis, request.RebalanceTimeoutMillis = session, 10000
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
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.GroupMinSessionTimeout(time.Second))
	if err != nil {
		panic(err)
	}
	one, two, three, other := connect(cluster), connect(cluster), connect(cluster), connect(cluster)
	a := join(one, join(one, "", 1000).MemberID, 1000).MemberID
	c := join(three, "", 30000).MemberID
	joined := make(chan bool)
	go func() { join(three, c, 30000); joined <- true }()
	for members(other) < 2 {
	}
	join(one, a, 1000)
	<-joined
	b := join(two, "", 30000).MemberID
	go join(two, b, 30000)
	for members(other) < 3 {
	}
	answered := make(chan bool)
	go func() { join(one, a, 1000); answered <- true }()
	fmt.Println("two members wait for a third one, members:", members(other))
	time.Sleep(2 * time.Second)
	fmt.Println("2 s later, members:", members(other))
	select {
	case <-answered:
		fmt.Println("the JoinGroup of the one with a session of 1 s was answered")
	case <-time.After(10 * time.Second):
		fmt.Println("the JoinGroup of the one with a session of 1 s was not answered")
	}
}
