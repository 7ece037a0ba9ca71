package github_test

import (
	"fmt"

	"github.com/errand-fleet/errand/tasks/github"
)

// New reports every missing setting at once.
func ExampleNew() {
	_, err := github.New(github.Config{})
	fmt.Println(err)
	// Output:
	// configure GitHub: no forge
	// no memory
	// no webhook secret
}
