package findings_test

import (
	"fmt"

	"github.com/errand-fleet/errand/tasks/github/findings"
)

// Read decodes an agent's structured answer.
func ExampleRead() {
	a,
		err := findings.Read([]byte(`{"summary":"One problem.","findings":[{"path":"main.go","line":3,"side":"RIGHT","severity":"major",` +
		`"confidence":"high","claim":"The error is dropped.","evidence":"Close may fail."}]}`))
	if err != nil {
		panic(err)
	}
	fmt.Println(a.Summary, len(a.Findings), a.Findings[0].Severity)
	// Output:
	// One problem. 1 major
}
