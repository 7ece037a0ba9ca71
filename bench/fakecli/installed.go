package fakecli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
)

// Name is that of a benchmark program that is to be Installed.
const Name = "claude"

// started is a socket beside the program.
const started = "started"

// Listen accepts a connection from each Installed below dir at its start. It ends with the CLI.
func Listen(ctx context.Context, dir string) (net.Listener, error) {
	l, err := new(net.ListenConfig).Listen(ctx, "unix", filepath.Join(dir, started))
	if err != nil {
		return nil, fmt.Errorf("listen: %w", err)
	}
	return l, nil
}

// Installed is the CLI as workers find it: it answers their checks, and otherwise is Main. It returns the exit code.
func Installed() int {
	switch os.Args[1] {
	case "--version":
		fmt.Println("2.1.332 (Claude Code)")
		return 0
	case "auth":
		fmt.Println(`{"loggedIn":true,"authMethod":"api_key"}`)
		return 0
	}
	conn, err := new(net.Dialer).DialContext(context.Background(), "unix",
		filepath.Join(filepath.Dir(os.Args[0]), started))
	if err == nil {
		defer conn.Close()
	} else if !errors.Is(err, fs.ErrNotExist) {
		fmt.Fprintln(os.Stderr, "say that the CLI was started:", err)
		return 1
	}
	return Main(os.Stdin, os.Stdout)
}
