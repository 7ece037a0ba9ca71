package slack_test

import (
	"fmt"

	"github.com/errand-fleet/errand/tasks/slack"
)

func ExampleManifest() {
	manifest, err := slack.Manifest("errand", "")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(string(manifest[:52]))
	// Output:
	// {
	//   "display_information": {
	//     "name": "errand",
}
