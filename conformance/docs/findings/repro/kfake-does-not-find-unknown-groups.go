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

func main() {
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1))
	if err != nil {
		panic(err)
	}
	client, ctx := connect(cluster), context.Background()
	beat := kmsg.NewPtrHeartbeatRequest()
	beat.Group, beat.MemberID = "g", "m"
	beaten, err := beat.RequestWith(ctx, client)
	if err != nil {
		panic(err)
	}
	fmt.Println("Heartbeat to a group that does not exist: error", beaten.ErrorCode)
	sync := kmsg.NewPtrSyncGroupRequest()
	sync.Group, sync.MemberID = "g", "m"
	synced, err := sync.RequestWith(ctx, client)
	if err != nil {
		panic(err)
	}
	fmt.Println("SyncGroup to a group that does not exist: error", synced.ErrorCode)
	leave := kmsg.NewPtrLeaveGroupRequest()
	leave.Members = append(leave.Members, kmsg.NewLeaveGroupRequestMember())
	left, err := leave.RequestWith(ctx, client)
	if err != nil {
		panic(err)
	}
	fmt.Println("LeaveGroup with an empty group id: error", left.ErrorCode)
}
