package thread_test

import (
	"fmt"

	"github.com/errand-fleet/errand/tasks/github/thread"
)

// The mark of a message finds it again, so that it is posted once.
func ExampleMessage_Mark() {
	m := thread.Message{Task: "1790000000000000-github-c7", What: "answered", At: 1790000060000000}
	text := m.Mark(1) + "\nIt is fixed."
	fmt.Println(thread.WhatOf(text))
	// Output: answered
}
