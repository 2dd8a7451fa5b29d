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

func join(client *kgo.Client, member string, kind string) *kmsg.JoinGroupResponse {
	protocol := kmsg.NewJoinGroupRequestProtocol()
	protocol.Name = "range"
	request := kmsg.NewPtrJoinGroupRequest()
	request.Group, request.ProtocolType, request.MemberID = "g", kind, member
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
	client := connect(cluster)
	fmt.Println("a client asks for a member id: error", join(client, "", "connect").ErrorCode)
	fmt.Println("a consumer asks for a member id: error", join(client, "", "consumer").ErrorCode)
}
