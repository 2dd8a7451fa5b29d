package main

import (
	"fmt"

	"github.com/twmb/franz-go/pkg/kmsg"
)

func main() {
	request := kmsg.NewPtrMetadataRequest()
	request.SetVersion(4)
	fmt.Printf("%x\n", request.AppendTo(nil))
	fmt.Println(kmsg.NewUpdateFeaturesRequestFeatureUpdate().UpgradeType)
	value := kmsg.NewOffsetCommitValue()
	fmt.Println(value.LeaderEpoch, value.ExpireTimestamp)
}
