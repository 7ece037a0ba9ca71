//go:build !linux

package sandbox

import (
	"context"
	"errors"
	"os"
)

// gatewayPort: see alone_linux.go. There is no sandbox here, and so no network of its own for a run.
const gatewayPort = 8080

func (r *Runner) alone(context.Context, string) bool { return false }

func seccompFile() (*os.File, error) { return nil, errors.ErrUnsupported }
