package main

import (
	"strings"
	"time"
	"github.com/IBM/sarama"
)

var assignors = map[string]sarama.BalanceStrategy{"range": sarama.BalanceStrategyRange,
	"roundrobin": sarama.BalanceStrategyRoundRobin, "sticky": sarama.BalanceStrategySticky,
	"cooperative-sticky": sarama.NewBalanceStrategyCooperativeSticky()}

func configure(config *sarama.Config) {
	config.Consumer.Offsets.AutoCommit.Enable = given("COMMIT") == "" || given("COMMIT") == "auto"
	member := &config.Consumer.Group
	member.InstanceId, config.Consumer.Offsets.AutoCommit.Interval = given("INSTANCE"), 100*time.Millisecond
	set("COMMIT_MS", &config.Consumer.Offsets.AutoCommit.Interval)
	sessionLasts = strings.Contains(given("ASSIGNORS"), "cooperative")
	for place, each := range strings.FieldsFunc(given("ASSIGNORS"), func(char rune) bool { return char == ',' }) {
		member.Rebalance.GroupStrategies = append(member.Rebalance.GroupStrategies[:place:place], assignors[each])
	}
}
