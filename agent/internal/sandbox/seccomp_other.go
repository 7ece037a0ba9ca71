//go:build !linux

package sandbox

import (
	"errors"
	"os"
)

func openFilter() (*os.File, error) { return nil, errors.ErrUnsupported }
