package view

import (
	"context"
	"errors"
	"testing"
)

// A call that ignores the end of its context is left behind, and continues.
func TestAwait(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancelCause(t.Context())
	release, ended := make(chan struct{}), make(chan struct{})
	do := func(context.Context) (string, error) {
		<-release
		defer close(ended)
		return "value", nil
	}
	cause := errors.New("the caller left")
	cancel(cause)
	if value, err := Await(ctx, do); value != "" || !errors.Is(err, cause) {
		t.Errorf("after the end of the context: %q, %v", value, err)
	}
	close(release)
	<-ended
	failed := errors.New("it failed")
	if value, err := Await(t.Context(), func(context.Context) (string, error) { return "value", failed }); value != "value" ||
		!errors.Is(err, failed) {
		t.Errorf("before it: %q, %v", value, err)
	}
}
