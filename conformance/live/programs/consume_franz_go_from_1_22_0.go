package main

import "github.com/twmb/franz-go/pkg/kgo"

// The protocol of KIP-848.
func serverSide() []kgo.Opt {
	if given("PROTOCOL") == "consumer" {
		return []kgo.Opt{kgo.ServerSideBalancer(), kgo.Balancers(kgo.StickyBalancer())}
	}
	return nil
}
