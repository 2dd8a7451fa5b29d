package main

import (
	"context"
	"github.com/twmb/franz-go/pkg/kgo"
)

// The protocol of KIP-848, which needs the consent of the user until 1.22.
func serverSide() []kgo.Opt {
	if given("PROTOCOL") == "consumer" {
		consents := context.WithValue(context.Background(), "opt_in_kafka_next_gen_balancer_beta", true)
		return []kgo.Opt{kgo.WithContext(consents), kgo.Balancers(kgo.StickyBalancer())}
	}
	return nil
}
