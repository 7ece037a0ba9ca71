package workspace_test

import (
	"context"
	"fmt"
	"os"

	"github.com/errand-fleet/errand/workspace"
)

// Checkout gives a thread a clone, which its next task finds again.
func ExampleWorkspace_Checkout() {
	w, err := workspace.New(workspace.Config{
		Dir: "/var/lib/errand/workspace",
		URL: func(repo string) string { return "https://github.com/" + repo },
		Credential: func(context.Context, string) (username, password string, err error) {
			return "x-access-token", os.Getenv("GITHUB_TOKEN"), nil
		},
	})
	if err != nil {
		panic(err)
	}
	clone, err := w.Checkout(context.Background(), workspace.Want{Thread: "chat/x", Repo: "acme/api"})
	if err != nil {
		panic(err)
	}
	fmt.Println(clone.Dir, clone.Base)
}
