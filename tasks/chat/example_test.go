package chat

import "fmt"

// Tasks may work in directories below the configured roots, but not in those of the system.
func ExampleSource_Directory() {
	source := New(Config{Dirs: []string{"/"}})
	_, err := source.Directory("/etc")
	fmt.Println(err)
	// Output:
	// "/etc" is in /etc, which belongs to the system
}
