package policy_test

import (
	"fmt"

	"github.com/errand-fleet/errand/tasks/policy"
)

// A person asks for a change of a repository that they may only read.
func Example() {
	ann := policy.Subject{Name: "ann"}
	run := policy.Object{Repos: []policy.Repo{{Name: "acme/api", Reads: true}}, Writes: true}
	v := policy.Decide(ann, policy.Work, run, policy.Posture{})
	fmt.Println(v.Allowed, v.Reads)
	fmt.Println(v.Reason)
	// Output:
	// true true
	// may read acme/api but not write to it
}
