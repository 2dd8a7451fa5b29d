package main

import (
	"time"
	"github.com/IBM/sarama"
)

// These releases have no static members.
func configure(config *sarama.Config) {
	config.Consumer.Offsets.AutoCommit.Enable = given("COMMIT") == "" || given("COMMIT") == "auto"
	config.Consumer.Offsets.AutoCommit.Interval = 100 * time.Millisecond
	set("COMMIT_MS", &config.Consumer.Offsets.AutoCommit.Interval)
}
