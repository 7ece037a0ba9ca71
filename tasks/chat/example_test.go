package chat

import "fmt"

// Tasks may work in directories below the configured roots, but not in those of the system.
func ExampleSource_Directory() {
	source, err := New(Config{Dirs: []string{"/"}})
	if err != nil {
		panic(err)
	}
	_, err = source.Directory("/etc")
	fmt.Println(err)
	// Output:
	// "/etc" is in /etc, which belongs to the system
}
