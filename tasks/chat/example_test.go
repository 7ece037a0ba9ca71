package chat_test

import (
	"fmt"

	"github.com/errand-fleet/errand/tasks/chat"
)

// Tasks may work in directories below the configured roots, but not in those of the system.
func ExampleSource_Directory() {
	source, err := chat.New(chat.Config{Dirs: []string{"/"}})
	if err != nil {
		panic(err)
	}
	_, err = source.Directory("/etc")
	fmt.Println(err)
	// Output:
	// "/etc" is in /etc, which belongs to the system
}
