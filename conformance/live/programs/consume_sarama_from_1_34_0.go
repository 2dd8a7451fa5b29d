package main

import (
	"time"
	"github.com/IBM/sarama"
)

// These releases offer one assignor.
func configure(config *sarama.Config) {
	config.Consumer.Offsets.AutoCommit.Enable = given("COMMIT") == "" || given("COMMIT") == "auto"
	config.Consumer.Group.InstanceId, config.Consumer.Offsets.AutoCommit.Interval = given("INSTANCE"), 100*time.Millisecond
	set("COMMIT_MS", &config.Consumer.Offsets.AutoCommit.Interval)
}
