//go:build !linux

package agent

import (
	"context"
	"errors"
	"net"
	"os"
)

// gatewayPort: see alone_linux.go. There is no sandbox here, and so no network of its own for a run.
const gatewayPort = 8080

func (r *Runner) alone(context.Context, string) bool { return false }

func socketPair() (ours, theirs *os.File, err error) { return nil, nil, errors.ErrUnsupported }

func lent(*os.File) (net.Listener, error) { return nil, errors.ErrUnsupported }

func seccompFile() (*os.File, error) { return nil, errors.ErrUnsupported }
