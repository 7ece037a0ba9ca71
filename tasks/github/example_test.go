package github

import "fmt"

// New reports every missing setting at once.
func ExampleNew() {
	_, err := New(Config{})
	fmt.Println(err)
	// Output:
	// configure GitHub: no forge
	// no memory
}
