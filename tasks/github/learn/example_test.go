package learn_test

import (
	"fmt"
	"time"

	"github.com/errand-fleet/errand/tasks/github/learn"
	"github.com/errand-fleet/errand/tasks/github/review"
)

func Example() {
	var r learn.Record
	for number := range 3 {
		r.Add([]learn.Result{{
			Judged: review.Judged{
				Known: review.Known{Finding: review.Finding{
					ID: "0123456789ab", Kind: "tests", Claim: "The test has no name.",
				}},
				Outcome: review.Rejected,
			},
			Number: number + 1, URL: fmt.Sprintf("https://github.com/acme/api/pull/%d#discussion_r1", number+1),
		}})
	}
	fmt.Printf("%+v\n", r.Acceptance())
	fmt.Println(r.Next(time.Now()).Line())
	// Output:
	// [{Kind:tests Fixed:0 Dismissed:3 Ignored:0}]
	// findings like "The test has no name." (tests)
}
