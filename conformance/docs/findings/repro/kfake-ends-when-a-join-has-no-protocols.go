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
	answer, err := join.RequestWith(context.Background(), client)
	if err != nil {
		panic(err)
	}
	fmt.Println("first JoinGroup: error", answer.ErrorCode)
	join.MemberID, join.Protocols = answer.MemberID, nil
	answer, err = join.RequestWith(context.Background(), client)
	fmt.Println("JoinGroup without protocols: error", answer.ErrorCode, err)
}
