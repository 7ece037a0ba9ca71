//go:build !linux

package supervise

import "errors"

func overlay([]string) error { return errors.ErrUnsupported }
