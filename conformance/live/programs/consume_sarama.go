// A consumer of sarama: consumes and commits until SIGTERM, then leaves and closes.
package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"
	"github.com/IBM/sarama"
)

type handler struct{}
func (handler) Setup(sarama.ConsumerGroupSession) error   { return nil }
func (handler) Cleanup(sarama.ConsumerGroupSession) error { return nil }
func (handler) ConsumeClaim(session sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	for each := range claim.Messages() {
		fmt.Println(each.Topic, each.Partition, each.Offset)
		session.MarkMessage(each, "")
	}
	return nil
}

var assignors = map[string]sarama.BalanceStrategy{"range": sarama.NewBalanceStrategyRange(),
	"roundrobin": sarama.NewBalanceStrategyRoundRobin(), "sticky": sarama.NewBalanceStrategySticky()}

func given(name string) string { return os.Getenv("KIPCHECK_" + name) }

func set(name string, to *time.Duration) {
	if found, err := time.ParseDuration(given(name) + "ms"); err == nil {
		*to = found
	}
}

func main() {
	config := sarama.NewConfig()
	member, offsets := &config.Consumer.Group, &config.Consumer.Offsets
	config.Version, offsets.Initial, offsets.AutoCommit.Interval = sarama.V2_8_0_0, sarama.OffsetOldest, 100*time.Millisecond
	set("SESSION_MS", &member.Session.Timeout)
	set("HEARTBEAT_MS", &member.Heartbeat.Interval)
	set("REBALANCE_MS", &member.Rebalance.Timeout)
	member.InstanceId, config.ClientID = given("INSTANCE"), cmp.Or(given("CLIENT_ID"), config.ClientID)
	for place, each := range strings.FieldsFunc(given("ASSIGNORS"), func(char rune) bool { return char == ',' }) {
		member.Rebalance.GroupStrategies = append(member.Rebalance.GroupStrategies[:place:place], assignors[each])
	}
	group, err := sarama.NewConsumerGroup([]string{given("BOOTSTRAP")}, given("GROUP"), config)
	if err != nil {
		panic(err)
	}
	ended, _ := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	for ended.Err() == nil {
		if refused, is := group.Consume(ended, strings.Split(given("TOPICS"), ","), handler{}).(sarama.KError); is {
			panic(refused)
		}
	}
	group.Close()
}
