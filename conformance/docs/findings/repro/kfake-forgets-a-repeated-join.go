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
	one, two, again := connect(cluster), connect(cluster), connect(cluster)
	join(one, join(one, "").MemberID)
	id := join(two, "").MemberID
	first, second := make(chan int16), make(chan int16)
	go func() { first <- join(two, id).ErrorCode }()
	time.Sleep(time.Second)
	go func() { second <- join(again, id).ErrorCode }()
	// The rebalance timeout of 10 s ends the join phase.
	fmt.Println("the second JoinGroup: error", <-second)
	select {
	case code := <-first:
		fmt.Println("the first JoinGroup: error", code)
	case <-time.After(5 * time.Second):
		fmt.Println("the first JoinGroup: no answer")
	}
}
