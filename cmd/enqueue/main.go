// Command enqueue is the client of a front door's API, and `enqueue serve` starts a front door. Run `enqueue help` for
// the list of commands.
package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"syscall"

	"github.com/spf13/cobra"
)

func main() {
	makePrivate()
	os.Exit(run(context.Background(), os.Args[1:], world{
		getenv: os.Getenv, environ: os.Environ(), stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr,
		notify: notifySignals,
	}))
}

// serveCommand returns a command that becomes the front door, which is a part of the program worker, so that clients
// need not have it.
func serveCommand() *cobra.Command {
	return &cobra.Command{
		Use: "serve", Short: "Serve webhooks, API and console", GroupID: ofServer.ID,
		RunE: func(*cobra.Command, []string) error {
			path, err := exec.LookPath(program("worker"))
			if err == nil {
				err = syscall.Exec(path, []string{path, "-front-door"}, os.Environ())
			}
			return fmt.Errorf("start the program worker, which has the front door: %w", err)
		},
	}
}
