package main

import (
	"context"
	"fmt"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"
)

func connect(cluster *kfake.Cluster) *kgo.Client {
	client, err := kgo.NewClient(kgo.SeedBrokers(cluster.ListenAddrs()...), kgo.MaxVersions(kversion.V2_4_0()))
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

func main() {
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1))
	if err != nil {
		panic(err)
	}
	client, instance := connect(cluster), "i"
	first := join(client, "", &instance)
	assignment := kmsg.NewSyncGroupRequestGroupAssignment()
	assignment.MemberID, assignment.MemberAssignment = first.MemberID, []byte("x")
	sync := kmsg.NewPtrSyncGroupRequest()
	sync.Group, sync.Generation, sync.MemberID, sync.InstanceID = "g", first.Generation, first.MemberID, &instance
	sync.GroupAssignment = append(sync.GroupAssignment, assignment)
	if _, err := sync.RequestWith(context.Background(), client); err != nil {
		panic(err)
	}
	second := join(client, "", &instance)
	fmt.Println("generation", first.Generation, "goes on:", second.Generation == first.Generation)
	fmt.Println("the restarted leader is made to assign:", second.LeaderID == second.MemberID, "members:", len(second.Members))
}
