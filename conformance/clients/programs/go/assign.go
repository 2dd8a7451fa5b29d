package main

import (
	"encoding/hex"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// balancers creates a new one for every operation.
var balancers = []func() kgo.GroupBalancer{
	kgo.RangeBalancer, kgo.RoundRobinBalancer, kgo.StickyBalancer, kgo.CooperativeStickyBalancer,
}

func assignors() []string {
	var names []string
	for _, each := range balancers {
		names = append(names, each().ProtocolName())
	}
	return names
}

func balancerOf(op object) kgo.GroupBalancer {
	for _, each := range balancers {
		if made := each(); made.ProtocolName() == op["assignor"] {
			return made
		}
	}
	return nil
}

// mayFail is a balancer that can return an error.
type mayFail interface {
	BalanceOrError(topics map[string]int32) (kgo.IntoSyncAssignment, error)
}

// assign does what the client does as leader of a group, from the members' bytes to the bytes for each.
func assign(op object) object {
	balancer := balancerOf(op)
	if balancer == nil {
		return object{"status": "unsupported", "message": fmt.Sprintf("unknown assignor %v", op["assignor"])}
	}
	members := []kmsg.JoinGroupResponseMember{}
	for _, each := range list(op["members"]) {
		given, _ := each.(object)
		member := kmsg.NewJoinGroupResponseMember()
		member.MemberID = text(given["id"])
		if instance, ok := given["instance"].(string); ok {
			member.InstanceID = &instance
		}
		metadata, err := joining(balancer, given)
		if err != nil {
			return rejected(err)
		}
		member.ProtocolMetadata = metadata
		members = append(members, member)
	}
	// Balancers require members in this order; the client sorts them.
	slices.SortStableFunc(members, before)
	of, interests, err := balancer.MemberBalancer(members)
	if err != nil {
		return rejected(err)
	}
	topics := map[string]int32{}
	for _, each := range list(op["topics"]) {
		given, _ := each.(object)
		name := text(given["name"])
		partitions, err := number(given["partitions"])
		if _, wanted := interests[name]; wanted && err == nil {
			topics[name] = int32(partitions)
		}
	}
	var plan kgo.IntoSyncAssignment
	if fallible, ok := of.(mayFail); ok {
		if plan, err = fallible.BalanceOrError(topics); err != nil {
			return rejected(err)
		}
	} else {
		plan = of.Balance(topics)
	}
	if plan == nil {
		return rejected(errors.New("no plan, and no error"))
	}
	shares := []object{}
	for _, each := range plan.IntoSyncAssignment() {
		var share kmsg.ConsumerMemberAssignment
		if err := share.ReadFrom(each.MemberAssignment); err != nil {
			return rejected(err)
		}
		partitions := [][]any{}
		for _, topic := range share.Topics {
			for _, partition := range topic.Partitions {
				partitions = append(partitions, []any{topic.Topic, partition})
			}
		}
		shares = append(shares, object{"id": each.MemberID, "partitions": partitions, "userData": bytesOrNull(share.UserData)})
	}
	return accepted("assignment", shares)
}

// userData is what a member writes that was assigned what it owns.
func userData(op object) object {
	balancer := balancerOf(op)
	if balancer == nil {
		return object{"status": "unsupported", "message": fmt.Sprintf("unknown assignor %v", op["assignor"])}
	}
	metadata, err := own(balancer, op)
	if err != nil {
		return rejected(err)
	}
	var subscription kmsg.ConsumerMemberMetadata
	if err := subscription.ReadFrom(metadata); err != nil {
		return rejected(err)
	}
	return accepted("hex", bytesOrNull(subscription.UserData))
}

// joining returns the metadata of a member: its own, but with given user data, and with its rack, as a client with a
// rack sets it.
func joining(balancer kgo.GroupBalancer, given object) ([]byte, error) {
	metadata, err := own(balancer, given)
	if err != nil {
		return nil, err
	}
	rack, racked := given["rack"].(string)
	data, told := given["userData"].(string)
	if !racked && !told {
		return metadata, nil
	}
	var subscription kmsg.ConsumerMemberMetadata
	if err := subscription.ReadFrom(metadata); err != nil {
		return nil, err
	}
	// By name, for releases without racks.
	if place := reflect.ValueOf(&subscription).Elem().FieldByName("Rack"); racked && place.IsValid() {
		place.Set(reflect.ValueOf(&rack))
		subscription.Version = max(subscription.Version, 3)
	}
	if told {
		if subscription.UserData, err = hex.DecodeString(data); err != nil {
			return nil, err
		}
	}
	return subscription.AppendTo(nil), nil
}

// own returns the metadata that the library's own member writes. The client keeps its topics as a set, and sorts them.
func own(balancer kgo.GroupBalancer, given object) ([]byte, error) {
	topics := []string{}
	for _, each := range list(given["subscription"]) {
		topics = append(topics, text(each))
	}
	slices.Sort(topics)
	topics = slices.Compact(topics)
	owned := map[string][]int32{}
	for _, each := range list(given["owned"]) {
		pair := list(each)
		if len(pair) != 2 {
			return nil, errors.New("an owned partition is a topic and a number")
		}
		partition, err := number(pair[1])
		if err != nil {
			return nil, err
		}
		owned[text(pair[0])] = append(owned[text(pair[0])], int32(partition))
	}
	for _, partitions := range owned {
		slices.Sort(partitions)
	}
	generation := int64(-1)
	if given["generation"] != nil {
		var err error
		if generation, err = number(given["generation"]); err != nil {
			return nil, err
		}
	}
	return balancer.JoinGroupMetadata(topics, owned, int32(generation)), nil
}

// before: members with an instance id come first, sorted by it, then the others by member id.
func before(one, other kmsg.JoinGroupResponseMember) int {
	switch {
	case one.InstanceID != nil && other.InstanceID != nil:
		return compare(*one.InstanceID, *other.InstanceID)
	case one.InstanceID != nil:
		return -1
	case other.InstanceID != nil:
		return 1
	}
	return compare(one.MemberID, other.MemberID)
}

func compare(one, other string) int {
	if one < other {
		return -1
	} else if one > other {
		return 1
	}
	return 0
}

func list(given any) []any {
	found, _ := given.([]any)
	return found
}

func text(given any) string {
	found, _ := given.(string)
	return found
}

func bytesOrNull(data []byte) any {
	if data == nil {
		return nil
	}
	return hex.EncodeToString(data)
}
